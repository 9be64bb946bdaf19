/** Names what each sealed value belongs to, so that none opens in the place of another. */

export const aboutConfig = "config";
/** @param account Its key. */
export const aboutToken = (account: string) => `github token of ${account}`;
/** @param sha256 Of its id, in hexadecimal. */
export const aboutSignIn = (sha256: string) => `sign-in ${sha256}`;
export const aboutSession = (account: string) => `copilot token of ${account}`;
