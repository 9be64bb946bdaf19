/**
 * Scripts that install one release: `curl -fsSL <release>/install.sh | sh`. They carry the checksums of the files, need no
 * rights of an administrator, change no file of a shell, and say what they did. The release workflow writes them beside the
 * files: `install-scripts.ts <tag> <address of the repository> <folder>`. The folder has SHA256SUMS.
 */
import { join } from "node:path";
import { targets } from "./targets";

interface Release {
  version: string;
  /** `https://github.com/owner/name` */
  repository: string;
  /** The SHA-256 of each file, in hexadecimal. */
  sums: ReadonlyMap<string, string>;
}

/** The lines of SHA256SUMS. */
export const readSums = (text: string): Map<string, string> =>
  new Map([...text.matchAll(/^([0-9a-f]{64}) [ *](.+)$/gm)].map(([, sum, name]) => [name!, sum!]));

/** The files of a release, by the names of the targets. @throws Error if the release has none for a target */
function filesOf({ version, repository, sums }: Release): Record<string, { url: string; sha256: string }> {
  const files = targets.map(({ name, format }) => {
    const file = `dragoman-${version}-${name}${format === "pe" ? ".exe" : ""}`;
    const sha256 = sums.get(file);
    if (sha256 === undefined) throw new Error(`SHA256SUMS has no ${file}.`);
    return [name, { url: `${repository}/releases/download/v${version}/${file}`, sha256 }] as const;
  });
  return Object.fromEntries(files);
}

/** The `owner/name` that `gh attestation verify` asks for. */
const nameOf = ({ repository }: Release) => new URL(repository).pathname.slice(1);

/** `install.sh`, for every POSIX shell on Linux and macOS. DRAGOMAN_INSTALL_DIR names another folder. */
export function shellInstaller(release: Release): string {
  const rows = Object.entries(filesOf(release))
    .filter(([target]) => !target.startsWith("windows"))
    .map(([target, { url, sha256 }]) => `  ${target}) url='${url}' sum='${sha256}' ;;`);
  return `#!/bin/sh
# Installs dragoman ${release.version}. It downloads one file, verifies its checksum, and with GitHub's \`gh\` its attestation too.
set -eu

fail() {
  echo "dragoman was not installed: $1" >&2
  exit 1
}

main() {
  folder="\${DRAGOMAN_INSTALL_DIR:-$HOME/.local/bin}"
  case "$(uname -s)" in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "there is no executable for $(uname -s)." ;;
  esac
  case "$(uname -m)" in
    x86_64 | amd64) processor=x64 ;;
    arm64 | aarch64) processor=arm64 ;;
    *) fail "there is no executable for $(uname -m)." ;;
  esac
  target="$system-$processor"
  # The own programs of Alpine and others use the C library musl. Elsewhere it may be installed beside the system's.
  if [ "$system" = linux ]; then
    case "$(ldd /bin/sh 2>&1)" in
      *musl*) target="$target-musl" ;;
    esac
  fi
  case "$target" in
${rows.map((row) => `  ${row}`).join("\n")}
    *) fail "there is no executable for $target." ;;
  esac

  mkdir -p "$folder"
  # In the same folder, so that it can be renamed into its place.
  fresh="$folder/.dragoman-install-$$"
  trap 'rm -f "$fresh"' EXIT
  echo "Downloading $url"
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL -o "$fresh" "$url" || fail "the download failed."
  elif command -v wget >/dev/null 2>&1; then
    wget -qO "$fresh" "$url" || fail "the download failed."
  else
    fail "curl or wget is needed."
  fi

  if command -v sha256sum >/dev/null 2>&1; then
    found="$(sha256sum "$fresh")"
  elif command -v shasum >/dev/null 2>&1; then
    found="$(shasum -a 256 "$fresh")"
  else
    fail "sha256sum or shasum is needed to verify the file."
  fi
  [ "\${found%% *}" = "$sum" ] || fail "the checksum of the file is wrong."
  if command -v gh >/dev/null 2>&1 && gh auth status >/dev/null 2>&1; then
    gh attestation verify "$fresh" --repo '${nameOf(release)}' >/dev/null || fail "its attestation is wrong."
    verified="Its checksum and its attestation are right."
  else
    verified="Its checksum is right. Its attestation was not verified, because gh is not installed or not signed in."
  fi

  chmod 755 "$fresh"
  mv "$fresh" "$folder/dragoman"
  echo "$verified"
  echo "dragoman ${release.version} is in $folder/dragoman. Nothing else was changed."
  case ":$PATH:" in
    *":$folder:"*) echo "Next: dragoman auth" ;;
    *) echo "Add $folder to your PATH; then: dragoman auth" ;;
  esac
}

# Called at the end: a script that was cut off in the download does nothing.
main
`;
}

/** `install.ps1`, for PowerShell on Windows. DRAGOMAN_INSTALL_DIR names another folder. */
export function powershellInstaller(release: Release): string {
  const { url, sha256 } = filesOf(release)["windows-x64"]!;
  return `# Installs dragoman ${release.version}. It downloads one file, verifies its checksum, and with GitHub's gh its attestation too.
$ErrorActionPreference = 'Stop'

function Install-Dragoman {
  $folder = if ($env:DRAGOMAN_INSTALL_DIR) { $env:DRAGOMAN_INSTALL_DIR } else { Join-Path $env:LOCALAPPDATA 'Programs\\dragoman' }
  New-Item -ItemType Directory -Force -Path $folder | Out-Null
  $fresh = Join-Path $folder ".dragoman-install-$PID.exe"
  try {
    Write-Output 'Downloading ${url}'
    Invoke-WebRequest -UseBasicParsing -Uri '${url}' -OutFile $fresh
    if ((Get-FileHash -Algorithm SHA256 -Path $fresh).Hash -ne '${sha256.toUpperCase()}') {
      throw 'The checksum of the file is wrong.'
    }
    $verified = 'Its checksum is right. Its attestation was not verified, because gh is not installed or not signed in.'
    if (Get-Command gh -ErrorAction SilentlyContinue) {
      gh auth status *> $null
      if ($LASTEXITCODE -eq 0) {
        gh attestation verify $fresh --repo '${nameOf(release)}' | Out-Null
        if ($LASTEXITCODE -ne 0) { throw 'Its attestation is wrong.' }
        $verified = 'Its checksum and its attestation are right.'
      }
    }
    Move-Item -Force -Path $fresh -Destination (Join-Path $folder 'dragoman.exe')
    Write-Output $verified
    Write-Output "dragoman ${release.version} is in $folder\\dragoman.exe. Nothing else was changed."
    if (($env:PATH -split ';') -contains $folder) { Write-Output 'Next: dragoman auth' }
    else { Write-Output "Add $folder to your PATH; then: dragoman auth" }
  } catch {
    throw "dragoman was not installed: $_"
  } finally {
    Remove-Item -Force -ErrorAction SilentlyContinue -Path $fresh
  }
}

Install-Dragoman
`;
}

if (import.meta.main) {
  const [tag = "", repository = "", folder = ""] = process.argv.slice(2);
  if (!/^v\d/.test(tag) || !folder) throw new Error("install-scripts.ts <tag> <address of the repository> <folder>");
  const sums = readSums(await Bun.file(join(folder, "SHA256SUMS")).text());
  const release = { version: tag.slice(1), repository, sums };
  await Bun.write(join(folder, "install.sh"), shellInstaller(release));
  await Bun.write(join(folder, "install.ps1"), powershellInstaller(release));
}
