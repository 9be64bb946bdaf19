/** The attestation of a release file: a Sigstore bundle that says which workflow of which repository has built it. */
import { bundleFromJSON } from "@sigstore/bundle";
import { toSignedEntity, toTrustMaterial, Verifier } from "@sigstore/verify";
import { z } from "zod";

type TrustedRoot = Parameters<typeof toTrustMaterial>[0];

interface ExpectedProvenance {
  /** The name of the file. */
  name: string;
  /** Of the file, in hexadecimal. */
  sha256: string;
  /** `https://github.com/owner/name` */
  repository: string;
  /** `v1.2.3` */
  tag: string;
}

/** The workflow that makes releases, as its certificate names it. */
const workflow = ".github/workflows/release.yml";
const issuer = "https://token.actions.githubusercontent.com";
const statementSchema = z.object({
  subject: z.array(z.object({ name: z.string(), digest: z.object({ sha256: z.string() }).partial() })),
  predicateType: z.string(),
});

/**
 * Checks the signature, the certificate, its transparency logs, who has signed, and what is attested.
 * @returns Why the bundle does not prove it, as the end of a sentence; undefined if it does.
 */
export function faultOfProvenance(
  bundle: unknown,
  expected: ExpectedProvenance,
  root: TrustedRoot,
): string | undefined {
  const { repository, tag } = expected;
  const identity = `${repository}/${workflow}@refs/tags/${tag}`;
  try {
    const parsed = bundleFromJSON(bundle);
    const verifier = new Verifier(toTrustMaterial(root), { ctlogThreshold: 1, tlogThreshold: 1 });
    const signer = verifier.verify(toSignedEntity(parsed), { extensions: { issuer } });
    const name = signer.identity?.subjectAlternativeName;
    if (name !== identity) return `it was made by ${name}, not by ${identity}`;
    if (parsed.content.$case !== "dsseEnvelope") return "it is no attestation";
    const statement = statementSchema.parse(JSON.parse(parsed.content.dsseEnvelope.payload.toString()));
    if (!statement.predicateType.startsWith("https://slsa.dev/provenance/")) return "it says nothing of a build";
    return statement.subject.some((each) => each.name === expected.name && each.digest.sha256 === expected.sha256)
      ? undefined
      : "it is about another file";
  } catch (thrown) {
    return `it does not verify: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  }
}
