/** What a build knows of itself. The release workflow gives the values, and the bundler writes them in place of the variables. */

export const buildStamp = {
  /** `https://github.com/owner/name`: where the releases of this build are. Undefined for a build of one's own. */
  repository: process.env.DRAGOMAN_BUILD_REPOSITORY || undefined,
  /** The name of the release's executable for this system: `linux-x64-musl`. Undefined as above. */
  target: process.env.DRAGOMAN_BUILD_TARGET || undefined,
};
