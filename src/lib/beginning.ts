/** The first `max` UTF-16 units of a text; one less where that would cut a character in half. */
export const beginningOf = (text: string, max: number): string =>
  text.length > max ? text.slice(0, max).replace(/[\ud800-\udbff]$/, "") : text;
