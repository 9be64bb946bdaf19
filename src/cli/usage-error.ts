/** A mistake in the command line or the environment, explained in a sentence; exit code 2. */
export class UsageError extends Error {}
