/** The certificate files that the environment names, for companies with a certificate authority of their own. Bun reads them, and silently skips files that it cannot use. */

import { readFileSync } from "node:fs";
import { codeOf } from "../../errors";

interface CertificateFile {
  variable: "NODE_EXTRA_CA_CERTS" | "SSL_CERT_FILE";
  path: string;
  /** Number of certificates in it; 0 when it cannot be used. */
  count: number;
  /** Why it is not used, as the end of a sentence about the file. */
  fault?: string;
}

/** The files that the environment names, read now. */
export function certificateFiles(env: Readonly<Record<string, string | undefined>> = process.env): CertificateFile[] {
  return (["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] as const).flatMap((variable) => {
    const path = env[variable];
    return path ? [{ variable, path, ...readCertificates(path) }] : [];
  });
}

/** A sentence for the owner about a file that is not used. */
export function warnOfCertificateFault({ variable, path, fault }: CertificateFile): string {
  return `${variable} names ${path}, which ${fault}; its certificates are not trusted.`;
}

function readCertificates(path: string): { count: number; fault?: string } {
  let text: string;
  try {
    text = readFileSync(path, "latin1");
  } catch (thrown) {
    const code = codeOf(thrown) || "unreadable";
    return { count: 0, fault: faults[code] ?? `cannot be read (${code})` };
  }
  const blocks = [...text.matchAll(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----([^-]*)-----END/g)];
  if (blocks.length === 0) return { count: 0, fault: "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)" };
  // One broken certificate makes the whole file unusable.
  const broken = blocks.findIndex(([, base64]) => !isWhole(Buffer.from(base64!, "base64")));
  if (broken >= 0) return { count: 0, fault: `does not read: certificate ${broken + 1} of ${blocks.length} is broken` };
  return { count: blocks.length };
}

const faults: Record<string, string> = {
  ENOENT: "does not exist",
  EISDIR: "is a folder",
  EACCES: "may not be read by this account",
};

/** Whether the DER sequence is as long as it says. Parsing each certificate would delay the start: a system's file has hundreds. */
function isWhole(der: Buffer): boolean {
  const lengthBytes = (der[1] ?? 0) - 0x80;
  if (der[0] !== 0x30 || lengthBytes < 1 || lengthBytes > 3 || der.length < 2 + lengthBytes) return false;
  return der.length === 2 + lengthBytes + der.readUIntBE(2, lengthBytes);
}
