/** The id with at most so many characters. A longer one is always replaced by the same one, which ends in its hash. */
export const shortId = (id: string, most: number): string =>
  id.length <= most ? id : `${id.slice(0, most - 14)}_${Bun.hash(id).toString(36).padStart(13, "0")}`;

/** The id of a call as Anthropic takes it: "String should match pattern '^[a-zA-Z0-9_-]+$'". The same one for the same id. */
export const wordId = (id: string): string =>
  /^[\w-]+$/.test(id) ? id : `${id.slice(0, 40).replace(/[^\w-]/g, "_")}_${Bun.hash(id).toString(36)}`;

/** 32 hexadecimal digits. */
export const randomId = (): string => crypto.randomUUID().replaceAll("-", "");
