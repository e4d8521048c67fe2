package org.gristway.simulator;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPolicy;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Policies have one implementation each, and it is not here. */
@Tag("java")
class SimulatorArchitectureTest {

  private static final JavaClasses SIMULATOR =
      new ClassFileImporter()
          .importUrl(Simulation.class.getProtectionDomain().getCodeSource().getLocation());

  @Test
  void no_policy_is_defined_here() {
    noClasses().should().beAssignableTo(ReadPolicy.class).check(SIMULATOR);
    noClasses().should().beAssignableTo(PlanSteps.class).check(SIMULATOR);
  }

  @Test
  void only_the_plans_of_core_are_used_and_memory_for_tables() {
    classes()
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(
            "java..",
            "org.jspecify..",
            "org.gristway",
            "org.gristway.chunk",
            "org.gristway.os",
            "org.gristway.plan..",
            "org.gristway.simulator")
        .check(SIMULATOR);
  }
}
