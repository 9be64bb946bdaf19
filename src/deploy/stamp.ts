/** What a build of the release workflow knows of itself; `src/cli/build-stamp.ts` reads it. A build of one's own knows nothing. */
import type { Target } from "./targets";

/** `https://github.com/owner/name`; undefined outside of the workflow. */
export function repositoryOfBuild(env: Record<string, string | undefined> = process.env): string | undefined {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = env;
  return server && name ? `${server}/${name}` : undefined;
}

/** Options for `bun build`: the values are written in place of the variables. */
export function stampOptions(target?: Pick<Target, "name">, repository = repositoryOfBuild()): string[] {
  const values = { DRAGOMAN_BUILD_REPOSITORY: repository ?? "", DRAGOMAN_BUILD_TARGET: target?.name ?? "" };
  return Object.entries(values).flatMap(([name, value]) => [
    "--define",
    `process.env.${name}=${JSON.stringify(value)}`,
  ]);
}
