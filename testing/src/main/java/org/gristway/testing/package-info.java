/** What the tests of every module share: the tag table, conditions, seeds. */
@NullMarked
package org.gristway.testing;

import org.jspecify.annotations.NullMarked;
