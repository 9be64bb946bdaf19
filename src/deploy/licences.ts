/** The licences of the packages that a bundle holds parts of: they ask to be handed on with it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** What Bun writes about a build. */
interface Metafile {
  outputs: Record<string, { inputs?: Record<string, { bytesInOutput: number }> }>;
}

/** @throws Error when a package comes without the text of its licence and does not name it either. */
export function licencesIn({ outputs }: Metafile, root: string): string {
  const files = Object.values(outputs).flatMap(({ inputs = {} }) =>
    Object.keys(inputs).filter((file) => inputs[file]!.bytesInOutput > 0),
  );
  const folders = new Set(files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0] ?? []));
  return [...folders]
    .sort()
    .map((folder) => licenceOf(join(root, folder)))
    .join(`\n${"-".repeat(80)}\n\n`);
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<
    string,
    string
  >;
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!file && !license) throw new Error(`${name} comes without a licence.`);
  return `${name} ${version}\n\n${file ? readFileSync(join(folder, file), "utf8").trim() : license}\n`;
}
