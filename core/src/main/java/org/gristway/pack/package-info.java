/**
 * Packing: turning folders and archives of small files into a dataset. {@link
 * org.gristway.pack.Packer} tells the whole story; a {@link org.gristway.pack.Source} is what is
 * packed. {@link org.gristway.pack.Placer} deals what was packed to several disks.
 */
@NullMarked
package org.gristway.pack;

import org.jspecify.annotations.NullMarked;
