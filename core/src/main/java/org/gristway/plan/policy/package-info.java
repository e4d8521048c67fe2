/** One way to read a class, each with the paper that it comes from, and the list of them all. */
@NullMarked
package org.gristway.plan.policy;

import org.jspecify.annotations.NullMarked;
