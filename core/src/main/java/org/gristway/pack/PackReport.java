package org.gristway.pack;

/**
 * What was packed.
 *
 * @param version of the dataset that was written
 * @param samples that were added
 * @param bytes of their parts
 * @param chunks that were added
 * @param leftOut files that were not packed: links that lead out of the source, say, and unreadable
 *     files where those may be skipped; each was told to the {@link Notices}
 */
public record PackReport(int version, long samples, long bytes, int chunks, long leftOut) {}
