/** Restores the settings files of clients, and says what became of each. */
import { type Undone, undoSettings } from "../../clients/settings-file/undo";
import type { SettingsFile } from "../../clients/settings-file/write";
import { say, shortened } from "../terminal";

/**
 * @param files Of one client, its settings file first.
 * @param force Also undoes settings of dragoman that were changed since.
 * @throws ProxyError `conflict` if `force` is needed; all files are unchanged then
 */
export async function undoFiles(files: readonly SettingsFile[], force: boolean): Promise<void> {
  for (const { state, file, kept } of await undoSettings(files, force)) {
    say(sentences[state](shortened(file)));
    if (kept) say(`The changed file is kept in ${shortened(kept)}.`);
  }
}

const sentences: Record<Undone["state"], (path: string) => string> = {
  restored: (path) => `${path} is restored to what it was before dragoman wrote to it.`,
  "taken out": (path) => `dragoman's settings are removed from ${path}; other changes made there since then are kept.`,
  removed: (path) => `${path} is removed: dragoman had created it.`,
  "already without": (path) => `${path} is already without dragoman's settings, so it stays as it is.`,
  "as it was": (path) => `${path} is already what it was before dragoman wrote to it.`,
};
