package org.gristway.testing;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A class of tests that change the machine (mounts, limits, users): only root on Linux can run
 * them, and they are skipped, with the reason, for anyone else.
 */
@Documented
@Inherited
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Tag("system")
@ExtendWith(RootOnLinux.class)
public @interface SystemTest {}
