package org.gristway.pack;

/** Where labels come from. */
public enum Labels {

  /**
   * From the number in a sample's {@code cls} part, where files are parts of samples; else, in
   * folders and zips, from its first folder.
   */
  USUAL,

  /** From a sample's first folder, in tars too; {@code cls} parts are parts like any other. */
  FOLDERS,

  /** From nowhere; {@code cls} parts are parts like any other. */
  NONE
}
