/** Ids of the responses dialect. */

export const ownId = (prefix: string): string => `${prefix}_${crypto.randomUUID().replaceAll("-", "")}`;
