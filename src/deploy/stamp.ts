/** What a build of the release workflow knows of itself; `src/cli/build-stamp.ts` reads it. A build of one's own knows nothing. */

/** `https://github.com/owner/name`; undefined outside of the workflow. */
export function repositoryOfBuild(env: Record<string, string | undefined> = process.env): string | undefined {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = env;
  return server && name ? `${server}/${name}` : undefined;
}

/** Options for `bun build`: the value is written in place of the variable. */
export const stampOptions = (repository = repositoryOfBuild()): string[] => [
  "--define",
  `process.env.DRAGOMAN_BUILD_REPOSITORY=${JSON.stringify(repository ?? "")}`,
];
