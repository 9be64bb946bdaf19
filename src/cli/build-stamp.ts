/** What a build knows of itself. The release workflow gives the value, and the bundler writes it in place of the variable. */

export const buildStamp = {
  /** `https://github.com/owner/name`: where the releases of this build are. Undefined for a build of one's own. */
  repository: process.env.DRAGOMAN_BUILD_REPOSITORY || undefined,
};
