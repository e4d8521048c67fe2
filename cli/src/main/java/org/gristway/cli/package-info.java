/** The gristway command. */
@NullMarked
package org.gristway.cli;

import org.jspecify.annotations.NullMarked;
