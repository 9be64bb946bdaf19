/** Names the model that served, where it may be another one than the client asked for. */
export const modelHeader = "x-dragoman-model";

/** A provider's model may have any name; a header holds ASCII. */
export const modelInHeader = (id: string): string =>
  id.replace(/[^ -~]+/g, (letters) => encodeURIComponent(letters.toWellFormed()));
