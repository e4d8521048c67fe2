package org.gristway;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.lang.foreign.Linker;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Who may use whom: operating system and spools below chunks, below snapshots, below datasets. */
@Tag("java")
class ArchitectureTest {

  private static final JavaClasses CORE =
      new ClassFileImporter()
          .importUrl(Failure.class.getProtectionDomain().getCodeSource().getLocation());

  @Test
  void packages_use_only_those_below_them() {
    layeredArchitecture()
        .consideringOnlyDependenciesInAnyPackage("org.gristway..")
        .layer("root")
        .definedBy("org.gristway")
        .layer("os")
        .definedBy("org.gristway.os")
        .layer("spool")
        .definedBy("org.gristway.spool")
        .layer("chunk")
        .definedBy("org.gristway.chunk")
        .layer("snapshot")
        .definedBy("org.gristway.snapshot")
        .layer("dataset")
        .definedBy("org.gristway.dataset")
        .layer("pack")
        .definedBy("org.gristway.pack")
        .whereLayer("root")
        .mayNotAccessAnyLayer()
        .whereLayer("os")
        .mayOnlyAccessLayers("root")
        .whereLayer("spool")
        .mayOnlyAccessLayers("root")
        .whereLayer("chunk")
        .mayOnlyAccessLayers("root", "os")
        .whereLayer("snapshot")
        .mayOnlyAccessLayers("root", "os", "spool", "chunk")
        .whereLayer("dataset")
        .mayOnlyAccessLayers("root", "os", "spool", "chunk", "snapshot")
        .whereLayer("pack")
        .mayOnlyAccessLayers("root", "os", "spool", "chunk", "snapshot", "dataset")
        .check(CORE);
  }

  @Test
  void packages_form_no_cycles() {
    slices().matching("org.gristway.(*)..").should().beFreeOfCycles().check(CORE);
  }

  @Test
  void only_one_package_makes_native_calls() {
    noClasses()
        .that()
        .resideOutsideOfPackage("org.gristway.os")
        .should()
        .dependOnClassesThat()
        .areAssignableTo(Linker.class)
        .check(CORE);
  }

  @Test
  void classes_have_names_that_say_something() {
    noClasses()
        .should()
        .haveNameMatching(".*(Utils?|Helper|Manager|Impl|Common|Abstract)([A-Z$].*)?")
        .check(CORE);
  }
}
