/** A Sigstore of our own, made of its project's own parts: it attests files as GitHub's `attest-build-provenance` does. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { initializeCA, initializeCTLog, initializeTLog } from "@sigstore/mock";

const ecKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const spki = (key: KeyObject) => key.export({ format: "der", type: "spki" });
const base64 = (bytes: ArrayBufferView | Buffer | string) =>
  (typeof bytes === "string"
    ? Buffer.from(bytes)
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  ).toString("base64");
const sha256 = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest();

interface Attested {
  name: string;
  /** Of the file, in hexadecimal. */
  sha256: string;
  /** `owner/name` */
  repository: string;
  /** `refs/tags/v1.2.3` */
  ref: string;
  /** The file of the workflow. */
  workflow?: string;
  issuer?: string;
  predicateType?: string;
}

/** As the log answers; its package does not bring the type along. */
interface LoggedEntry {
  body: string;
  integratedTime: number;
  logID: string;
  logIndex: number;
  verification: {
    signedEntryTimestamp: string;
    inclusionProof: { logIndex: number; treeSize: number; rootHash: string; checkpoint: string };
  };
}

export async function startSigstore() {
  const [caKeys, ctKeys, logKeys] = [ecKeys(), ecKeys(), ecKeys()];
  const ctLog = await initializeCTLog(ctKeys);
  const ca = await initializeCA(caKeys, ctLog);
  const log = await initializeTLog("https://rekor.sigstore.dev", logKeys);
  const start = new Date(Date.now() - 3_600_000).toISOString();
  const logOf = (publicKey: Buffer, id: Buffer, baseUrl: string) => ({
    baseUrl,
    hashAlgorithm: "SHA2_256",
    publicKey: { rawBytes: base64(publicKey), keyDetails: "PKIX_ECDSA_P256_SHA_256", validFor: { start } },
    logId: { keyId: base64(id) },
  });

  return {
    /** What a verifier trusts, as JSON. */
    trustedRoot: {
      mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
      tlogs: [logOf(log.publicKey, sha256(log.publicKey), "https://rekor.sigstore.dev")],
      certificateAuthorities: [
        {
          subject: { organization: "test", commonName: "test" },
          uri: "https://fulcio.sigstore.dev",
          certChain: { certificates: [{ rawBytes: base64(ca.rootCertificate) }] },
          validFor: { start },
        },
      ],
      ctlogs: [logOf(ctLog.publicKey, Buffer.from(ctLog.logID.buffer), "https://ctfe.sigstore.dev")],
      timestampAuthorities: [],
    },
    /** A bundle, as GitHub's API has it. */
    async attest(attested: Attested) {
      const {
        name,
        repository,
        ref,
        workflow = ".github/workflows/release.yml",
        issuer = "https://token.actions.githubusercontent.com",
        predicateType = "https://slsa.dev/provenance/v1",
      } = attested;
      const keys = ecKeys();
      const certificate = await ca.issueCertificate({
        publicKey: spki(keys.publicKey),
        subjectAltName: `https://github.com/${repository}/${workflow}@${ref}`,
        extensions: [
          { oid: "1.3.6.1.4.1.57264.1.1", value: issuer, legacy: true },
          { oid: "1.3.6.1.4.1.57264.1.8", value: issuer },
        ],
      });
      const subject = [{ name, digest: { sha256: attested.sha256 } }];
      const statement = { _type: "https://in-toto.io/Statement/v1", subject, predicateType, predicate: {} };
      const payload = Buffer.from(JSON.stringify(statement));
      const payloadType = "application/vnd.in-toto+json";
      const signed = `DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} ${payload}`;
      const signature = sign("sha256", Buffer.from(signed), keys.privateKey).toString("base64");
      const proposed = {
        apiVersion: "0.0.1",
        kind: "dsse",
        spec: {
          envelopeHash: { algorithm: "sha256", value: sha256(payload).toString("hex") },
          payloadHash: { algorithm: "sha256", value: sha256(payload).toString("hex") },
          signatures: [{ signature, verifier: base64(certificate) }],
        },
      };
      const [entry] = Object.values(await log.log(proposed)) as LoggedEntry[];
      const { inclusionProof, signedEntryTimestamp } = entry!.verification;
      return {
        mediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
        verificationMaterial: {
          certificate: { rawBytes: base64(certificate) },
          tlogEntries: [
            {
              logIndex: String(entry!.logIndex),
              logId: { keyId: Buffer.from(entry!.logID, "hex").toString("base64") },
              kindVersion: { kind: "dsse", version: "0.0.1" },
              integratedTime: String(entry!.integratedTime),
              inclusionPromise: { signedEntryTimestamp },
              inclusionProof: {
                logIndex: String(inclusionProof.logIndex),
                treeSize: String(inclusionProof.treeSize),
                rootHash: Buffer.from(inclusionProof.rootHash, "hex").toString("base64"),
                hashes: [],
                checkpoint: { envelope: inclusionProof.checkpoint },
              },
              canonicalizedBody: entry!.body,
            },
          ],
          timestampVerificationData: { rfc3161Timestamps: [] },
        },
        dsseEnvelope: { payload: payload.toString("base64"), payloadType, signatures: [{ sig: signature, keyid: "" }] },
      };
    },
  };
}
