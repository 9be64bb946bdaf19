/** Anything else could be somebody's text. */
const isMediaType = /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/;

/** A media type that a client states, as it may be written down. */
export const writtenType = (mediaType: string): string => (isMediaType.test(mediaType) ? mediaType : "(no plain name)");
