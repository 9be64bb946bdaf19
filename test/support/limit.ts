/** How long a test may take that sets no limit itself, ms: it ends what hangs, and is no measure of a busy machine. */
export const limitMs = 60_000;
