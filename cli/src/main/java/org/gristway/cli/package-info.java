/**
 * The gristway command. {@link org.gristway.cli.Main} starts, {@link org.gristway.cli.RootCommand}
 * finds the command that is asked for, one class each, and {@link org.gristway.cli.Outcome} turns
 * whatever ends it into an exit code and at most one line.
 */
@NullMarked
package org.gristway.cli;

import org.jspecify.annotations.NullMarked;
