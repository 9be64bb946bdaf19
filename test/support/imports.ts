/** Who imports whom, read from the text: imports of types count too, which is why no transpiler is asked. */
import { dirname, join, normalize, relative } from "node:path";

/** For each file below `root` the files below it that it imports, by paths relative to it. */
export async function importGraph(root: string, pattern = "**/*.{ts,tsx}"): Promise<Map<string, string[]>> {
  const files = new Set([...new Bun.Glob(pattern).scanSync(root)].sort());
  const resolved = (file: string, specifier: string) => {
    const path = relative(root, normalize(join(root, dirname(file), specifier)));
    return [path, `${path}.ts`, `${path}.tsx`].find((each) => files.has(each)) ?? path;
  };
  const importsOf = async (file: string) => {
    const text = await Bun.file(join(root, file)).text();
    const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, specifier]) => specifier!);
    return specifiers.map((specifier) => resolved(file, specifier)).filter((path) => !path.startsWith(".."));
  };
  return new Map(await Promise.all([...files].map(async (file) => [file, await importsOf(file)] as const)));
}
