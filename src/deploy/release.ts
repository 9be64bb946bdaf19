/** What the release workflow asks: `tag v1.2.3` (is it this version's?) and `notes v1.2.3` (what is new in it). */
import { join } from "node:path";
import { version } from "../../package.json";
import { repositoryOfBuild } from "./stamp";

/** @throws Error when the tag is not this version's. */
export function checkTag(tag: string): void {
  if (tag !== `v${version}`) throw new Error(`The tag is ${tag}, but package.json says ${version}.`);
}

/**
 * What the changelog says of a version, as Markdown for the release's page, where links lead to the files of the tag.
 * A release has at most 125,000 characters of it: https://docs.github.com/rest/releases (2026-11).
 * @param repository `https://github.com/owner/name` @throws Error where the changelog says nothing of it
 */
export function notesFor(tag: string, changelog: string, repository: string): string {
  // 1.2.0-rc.1 has the notes of 1.2.0.
  const [number = ""] = tag.slice(1).split("-");
  const section = changelog.split(/^(?=## )/m).find((text) => text.slice(3).split(/\s/)[0] === number);
  if (!section) throw new Error(`.github/CHANGELOG.md says nothing of ${number}.`);
  return section
    .slice(section.indexOf("\n"))
    .trim()
    .replaceAll(
      /\]\((?![a-z]+:|#)([^)]+)\)/g,
      (_, path: string) => `](${new URL(path, `${repository}/blob/${tag}/.github/`)})`,
    )
    .concat("\n");
}

if (import.meta.main) {
  const [what, tag = ""] = process.argv.slice(2);
  const changelog = Bun.file(join(import.meta.dir, "../../.github/CHANGELOG.md"));
  if (what === "tag") checkTag(tag);
  else if (what === "notes") process.stdout.write(notesFor(tag, await changelog.text(), repositoryOfBuild() ?? ""));
  else throw new Error(`There is no ${what}: tag, notes.`);
}
