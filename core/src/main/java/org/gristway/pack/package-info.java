/**
 * Packing: turning folders and archives of small files into a dataset. {@link
 * org.gristway.pack.Packer} tells the whole story; a {@link org.gristway.pack.Source} is what is
 * packed.
 */
@NullMarked
package org.gristway.pack;

import org.jspecify.annotations.NullMarked;
