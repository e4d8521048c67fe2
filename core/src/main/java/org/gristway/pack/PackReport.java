package org.gristway.pack;

/**
 * What was packed.
 *
 * @param version of the dataset that was written
 * @param samples that were added
 * @param labelled how many of them have a label
 * @param classes how many different labels those have; -1 if one is 67,108,864 or more, and they
 *     were not counted
 * @param bytes of their parts
 * @param chunks that were added
 * @param leftOut files that were not packed: links that lead out of the source, say, and unreadable
 *     files where those may be skipped; each was told to the {@link Notices}
 */
public record PackReport(
    int version, long samples, long labelled, int classes, long bytes, int chunks, long leftOut) {}
