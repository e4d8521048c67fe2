package org.gristway.read;

/**
 * What an epoch has read and delivered, on all ranks of this node.
 *
 * @param samples delivered, repeats not counted
 * @param bytes of those samples
 * @param storageReads requests to the storage
 * @param storageBytes that they read
 * @param rereadBytes of those: of extents that were read in this epoch before, after a resume
 * @param fetched got from a cache in place of the storage
 * @param fetchedBytes of those
 * @param fallBacks read from the storage because a cache had them not, against the plan
 * @param peakResidentBytes the most memory that frames took, and what is kept in memory
 * @param redirected samples that are not the requested ones
 * @param repeated places filled with a sample that is delivered elsewhere
 * @param damaged of those: places of damaged samples
 * @param stallNanos that trainers waited for data, the sum over ranks
 */
public record EpochReport(
    long epoch,
    long samples,
    long bytes,
    long storageReads,
    long storageBytes,
    long rereadBytes,
    long fetched,
    long fetchedBytes,
    long fallBacks,
    long peakResidentBytes,
    long redirected,
    long repeated,
    long damaged,
    long stallNanos) {}
