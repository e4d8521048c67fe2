/**
 * What the operating system offers and the JDK does not: every native call of the project is in
 * {@link org.gristway.os.Posix}, and the rest of this package gives those calls a Java shape.
 */
@NullMarked
package org.gristway.os;

import org.jspecify.annotations.NullMarked;
