/** Which long texts may stay marks in a skeleton, judged by their beginning. */

/**
 * The rules and codecs ask of a text whether it is blank, what it starts with, and which data its URL holds. A text whose
 * beginning does not answer that is read whole.
 */
export const keepsText = (beginning: string): boolean =>
  /\S/.test(beginning) && (!beginning.startsWith("data:") || dataStart.test(beginning));

/** A PDF; a text file is decoded for some upstreams. */
export const keepsFile = (beginning: string): boolean => beginning.startsWith("data:application/pdf;base64,");

/** The base64 of a PNG, JPEG, GIF, WebP or PDF file; a text file is decoded for some upstreams. */
export const keepsMedia = (beginning: string): boolean =>
  /^(?:iVBORw0KGgo|\/9j\/|R0lGOD|UklGR|JVBERi0)/.test(beginning);

const dataStart = /^data:.{0,280};base64,/s;
