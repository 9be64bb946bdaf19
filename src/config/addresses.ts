/** Checks the addresses in the config to which dragoman sends requests. */
import { z } from "zod";
import { ProxyError } from "../lib/errors";
import { checkUpstreamUrl } from "./environment";

/** Addresses at which clouds hand out the machine's own credentials; nothing of ours is there. */
const metadataHost =
  /^(?:169\.254\.\d+\.\d+|100\.100\.100\.200|\[fd00:ec2::254\]|\[fe[89ab].*\]|\[::ffff:a9fe:.*\]|metadata(?:\.google\.internal)?\.?)$/;

/** The address of a provider, without slashes at its end. */
export const baseUrl = z
  .string()
  .max(2_048)
  .transform((given, context) => {
    const fault = faultOfUrl(given);
    if (fault === undefined) return checkUpstreamUrl("", given);
    context.addIssue({ code: "custom", message: fault });
    return z.NEVER;
  });

/** Its path is usually a secret, so it is kept as it is and never shown. */
export const webhookUrl = z
  .string()
  .max(2_048)
  .refine(
    (given) => faultOfUrl(URL.parse(given)?.origin ?? given) === undefined,
    "must be an https URL, or http for this machine only",
  )
  .refine((given) => !/[\s#]/.test(given), "must not contain spaces or a fragment");

/** What is wrong with an address, for the end of a sentence about it. */
function faultOfUrl(given: string): string | undefined {
  try {
    const url = checkUpstreamUrl("", given);
    return metadataHost.test(new URL(url).hostname) ? "must not be a metadata or link-local address" : undefined;
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    return thrown.message.trim().replace(/\.$/, "");
  }
}
