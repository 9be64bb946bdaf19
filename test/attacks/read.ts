/** Which tests speak of which row, read from their names as they stand in the files. */
import { join } from "node:path";

const root = join(import.meta.dir, "..");

export interface NamedTest {
  file: string;
  name: string;
}

/** Every text in a test file that names a row, and every name of a test. Comments and tests that are skipped do not count. */
export async function namesInTests(): Promise<NamedTest[]> {
  const names: NamedTest[] = [];
  for (const file of [...new Bun.Glob("**/*.test.ts").scanSync(root)].sort()) {
    const source = await Bun.file(join(root, file)).text();
    const code = source.replace(/^\s*(?:\/\/|\/?\*|test\.skip\().*$/gm, "");
    for (const [, quoted, templated] of code.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g))
      names.push({ file, name: quoted ?? templated ?? "" });
  }
  return names;
}

/** The ids of a name: `AU07, AU08: two headers …`; a bare id is one that a name is made with. */
export function idsOf(name: string): string[] {
  const alone = /^(?:[A-Z]\d{1,2}(?:, )?)+$/.test(name);
  return [
    ...(name.match(/\b[A-Z]{2}\d{2}\b/g) ?? []),
    ...(name.match(alone ? /\b[A-Z]\d{1,2}\b/g : /\b[A-Z]\d{1,2}(?=(?:, [A-Z]{1,2}\d{1,2})*(?:: | %))/g) ?? []),
  ];
}

/** The file and the words of `file: words`. */
export function placeOf(shown: string): NamedTest {
  const at = shown.indexOf(": ");
  return { file: shown.slice(0, at), name: shown.slice(at + 2) };
}
