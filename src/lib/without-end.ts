/**
 * A text without these characters at its end. A pattern such as `/\/+$/` begins anew at each of them, which for a long text that
 * ends otherwise takes minutes.
 */
export function withoutEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1]!)) end -= 1;
  return text.slice(0, end);
}
