/** What the release workflow asks: `tag v1.2.3` (is it this version's?) and `notes v1.2.3` (what changed since the last). */
import { resolve } from "node:path";
import { version } from "../../package.json";

/** @throws Error when the tag is not this version's. */
export function checkTag(tag: string): void {
  if (tag !== `v${version}`) throw new Error(`The tag is ${tag}, but package.json says ${version}.`);
}

/** The messages of the commits since the tag before, the newest first, as Markdown. @throws Error where git does not know. */
export function notesFor(tag: string, repository: string): string {
  const before = git(["describe", "--tags", "--abbrev=0", "--match", "v*", `${tag}^`], repository, true);
  const range = before ? `${before}..${tag}` : tag;
  const commits = git(["log", "--no-merges", "--format=%s%n%n%b%x00", range], repository).split("\0");
  return `${commits
    .map((message) => message.trim())
    .filter((message) => message !== "")
    .map((message) => `- ${message.replace(/\n+/g, (breaks) => (breaks.length > 1 ? "\n\n  " : "\n  "))}\n`)
    .join("\n")}`;
}

function git(args: string[], repository: string, mayFail = false): string {
  const { stdout, stderr, success } = Bun.spawnSync(["git", ...args], { cwd: repository, timeout: 30_000 });
  if (success) return stdout.toString().trim();
  if (mayFail) return "";
  throw new Error(`git ${args[0]}: ${stderr}`);
}

if (import.meta.main) {
  const [what, tag = ""] = process.argv.slice(2);
  if (what === "tag") checkTag(tag);
  else if (what === "notes") process.stdout.write(notesFor(tag, resolve(import.meta.dir, "../..")));
  else throw new Error(`There is no ${what}: tag, notes.`);
}
