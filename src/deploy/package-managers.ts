/**
 * What Homebrew, Scoop and winget need to know of a release, and its install scripts, written beside its files by the
 * release workflow: `package-managers.ts <tag> <address of the repository> <folder>`. The folder has SHA256SUMS.
 */
import { join } from "node:path";
import { description } from "../../package.json";
import { powershellInstaller, shellInstaller } from "./install-scripts";
import { type Target, targets } from "./targets";

interface ReleaseFacts {
  version: string;
  /** `https://github.com/owner/name` */
  repository: string;
  /** The SHA-256 of each file, in hexadecimal. */
  sums: ReadonlyMap<string, string>;
}

/** The lines of SHA256SUMS. */
export const readSums = (text: string): Map<string, string> =>
  new Map([...text.matchAll(/^([0-9a-f]{64}) [ *](.+)$/gm)].map(([, sum, name]) => [name!, sum!]));

/** The file of a release for a machine. @throws Error if the release has none */
function fileOf({ version, repository, sums }: ReleaseFacts, { name, format }: Target) {
  const file = `dragoman-${version}-${name}${format === "pe" ? ".exe" : ""}`;
  const sha256 = sums.get(file);
  if (sha256 === undefined) throw new Error(`SHA256SUMS has no ${file}.`);
  return { url: `${repository}/releases/download/v${version}/${file}`, sha256 };
}

/** The files of all machines, by the names of the targets. */
export const filesOf = (facts: ReleaseFacts) =>
  Object.fromEntries(targets.map((target) => [target.name, fileOf(facts, target)]));

const targetOf = (name: string) => targets.find((each) => each.name === name)!;

/** Homebrew's words for the systems and processors, and our targets. musl has no bottle of Homebrew's. */
const brewed = {
  on_macos: { on_arm: targetOf("darwin-arm64"), on_intel: targetOf("darwin-x64") },
  on_linux: { on_arm: targetOf("linux-arm64"), on_intel: targetOf("linux-x64") },
};

/** A sentence without the period at its end, as both want it. */
const short = description.replace(/\.$/, "").slice(0, 79);

/** `dragoman.rb`, for a tap. */
export function formula(facts: ReleaseFacts): string {
  const systems = Object.entries(brewed).map(([system, processors]) => {
    const files = Object.entries(processors).map(([processor, target]) => {
      const { url, sha256 } = fileOf(facts, target);
      return `    ${processor} do\n      url "${url}"\n      sha256 "${sha256}"\n    end\n`;
    });
    return `  ${system} do\n${files.join("")}  end\n`;
  });
  return `class Dragoman < Formula
  desc "${short}"
  homepage "${facts.repository}"
  version "${facts.version}"
  license "MIT"

${systems.join("\n")}
  def install
    bin.install Dir["dragoman-*"].first => "dragoman"
    generate_completions_from_executable(bin/"dragoman", "completion", shells: [:bash, :zsh, :fish])
  end

  service do
    run [opt_bin/"dragoman", "start"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dragoman --version")
  end
end
`;
}

/** `dragoman.json`, for a bucket of Scoop's: https://github.com/ScoopInstaller/Scoop/wiki/App-Manifests, read 2026-11. */
export function scoopManifest(facts: ReleaseFacts): string {
  const { url, sha256 } = fileOf(facts, targetOf("windows-x64"));
  const anyVersion = (text: string) => text.replaceAll(facts.version, "$version");
  const manifest = {
    version: facts.version,
    description: short,
    homepage: facts.repository,
    license: "MIT",
    // Scoop saves the file under the name behind the #.
    architecture: { "64bit": { url: `${url}#/dragoman.exe`, hash: sha256 } },
    bin: "dragoman.exe",
    checkver: "github",
    autoupdate: {
      architecture: { "64bit": { url: `${anyVersion(url)}#/dragoman.exe` } },
      hash: { url: "$baseurl/SHA256SUMS" },
    },
  };
  return `${JSON.stringify(manifest, null, 4)}\n`;
}

const manifestVersion = "1.6.0";

/** The three manifests of winget, by file name: https://learn.microsoft.com/windows/package-manager/package/manifest */
export function wingetManifests(facts: ReleaseFacts): Record<string, string> {
  const [owner = ""] = new URL(facts.repository).pathname.split("/").filter(Boolean);
  const identifier = `${owner}.dragoman`;
  const { url, sha256 } = fileOf(facts, targetOf("windows-x64"));
  const common = { PackageIdentifier: identifier, PackageVersion: facts.version };
  const kinds: Record<string, object> = {
    version: { ...common, DefaultLocale: "en-US" },
    installer: {
      ...common,
      InstallerType: "portable",
      Commands: ["dragoman"],
      Installers: [{ Architecture: "x64", InstallerUrl: url, InstallerSha256: sha256.toUpperCase() }],
    },
    defaultLocale: {
      ...common,
      PackageLocale: "en-US",
      Publisher: owner,
      PublisherUrl: new URL(`/${owner}`, facts.repository).href,
      PackageName: "dragoman",
      PackageUrl: facts.repository,
      License: "MIT",
      LicenseUrl: `${facts.repository}/blob/v${facts.version}/LICENSE`,
      ShortDescription: short,
      ReleaseNotesUrl: `${facts.repository}/releases/tag/v${facts.version}`,
    },
  };
  const names: Record<string, string> = {
    version: `${identifier}.yaml`,
    installer: `${identifier}.installer.yaml`,
    defaultLocale: `${identifier}.locale.en-US.yaml`,
  };
  return Object.fromEntries(
    Object.entries(kinds).map(([kind, fields]) => {
      const manifest = { ...fields, ManifestType: kind, ManifestVersion: manifestVersion };
      const schema = `# yaml-language-server: $schema=https://aka.ms/winget-manifest.${kind}.${manifestVersion}.schema.json`;
      return [names[kind]!, `${schema}\n${Bun.YAML.stringify(manifest, null, 2)}\n`];
    }),
  );
}

if (import.meta.main) {
  const [tag = "", repository = "", folder = ""] = process.argv.slice(2);
  if (!/^v\d/.test(tag) || !folder) throw new Error("package-managers.ts <tag> <address of the repository> <folder>");
  const sums = readSums(await Bun.file(join(folder, "SHA256SUMS")).text());
  const facts = { version: tag.slice(1), repository, sums };
  const files: Record<string, string> = {
    "dragoman.rb": formula(facts),
    "dragoman.json": scoopManifest(facts),
    "install.sh": shellInstaller(facts, filesOf(facts)),
    "install.ps1": powershellInstaller(facts, filesOf(facts)),
    ...wingetManifests(facts),
  };
  for (const [name, text] of Object.entries(files)) await Bun.write(join(folder, name), text);
}
