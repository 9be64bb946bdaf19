const utf8 = new TextDecoder("utf-8", { fatal: true });

/** A header as it was meant: its bytes come as characters of Latin-1, and a client may have written UTF-8. */
export function headerText(header: string): string {
  if (!/[\x80-\xff]/.test(header) || /[^\0-\xff]/.test(header)) return header;
  try {
    return utf8.decode(Buffer.from(header, "latin1"));
  } catch {
    return header; // it is Latin-1
  }
}
