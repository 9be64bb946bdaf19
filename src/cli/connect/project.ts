/** `dragoman connect <client> --project`: what names a project stands in settings of its own, beside those that lead to dragoman. */
import type { ProjectSettings } from "../../clients/client";
import { editSettings } from "../../clients/formats";
import { type ClientFile, type ClientId, clientOf } from "../../clients/index";
import { backupsIn, targetOf } from "../../clients/settings-file/backup";
import { unifiedDiff } from "../../clients/settings-file/diff";
import { isByHand, type SettingsFile, writeSettings } from "../../clients/settings-file/write";
import type { Environment } from "../../config/environment";
import { projectHeader } from "../../proxy/relay/hints";
import { mayRemove, print, say, shortened } from "../terminal";
import { person, placeOf } from "./tools";
import { undoFiles } from "./undo";

interface ProjectOptions {
  environment: Environment;
  client: ClientId;
  /** Its name. */
  project: string;
  force: boolean;
  yes: boolean;
}

const suffix = ".project";

/**
 * Prints, writes or undoes what a client that has settings of projects needs for this one, in the current folder.
 * @returns The exit code.
 */
export async function connectProject(
  options: ProjectOptions,
  settings: ProjectSettings,
  action: "print" | "write" | "undo",
): Promise<number> {
  const { environment, client: id, project } = options;
  const { name, file: main } = clientOf(id);
  const path = settings.locate(person(), process.cwd(), project);
  const file: ClientFile = {
    id: id + suffix,
    format: main!.format,
    path,
    edits: settings.edits(projectHeader, project),
  };
  const again = `dragoman connect ${id} --project ${JSON.stringify(project)}`;
  const place = { ...placeOf(id, file, environment), undoneBy: `${again} --undo` };
  if (action === "undo") return undo(options, place);
  const show = () =>
    print(
      `In ${shortened(path)} (\`${again} --write\` writes this there, \`--undo\` restores the file):`,
      "",
      editSettings(file.format, "", file.edits),
    );
  if (action === "print") show();
  else {
    const written = await writeSettings([[place, { edits: file.edits }]]).catch((thrown: unknown) => {
      if (isByHand(thrown)) show();
      throw thrown;
    });
    const { before, after } = written[0]!;
    if (before === after) say(`${shortened(path)} already has these settings; nothing was changed.`);
    print(...unifiedDiff(before, after, shortened(path)));
    say(`\`${again} --undo\` ${before === "" ? "removes the file again" : "restores the file as it was before"}.`);
  }
  say(
    `This only names the project. What leads ${name} to dragoman is in ${shortened(main!.locate(person()))}: \`dragoman connect ${id} --write\`.`,
  );
  if (settings.command) say(`Then run: ${settings.command(project)}`);
  return 0;
}

async function undo({ environment, force, yes }: ProjectOptions, place: SettingsFile): Promise<number> {
  const { id, path } = place;
  // Another folder's file is not meant.
  const isThis = (backup: { id: string; file: string }) => backup.id === id && targetOf(backup.file) === targetOf(path);
  if (!backupsIn(environment.home).some(isThis)) {
    say(`Nothing to undo: dragoman has not written to ${shortened(path)}.`);
    return 0;
  }
  const question = `Restore ${shortened(path)} as before dragoman wrote there?`;
  if (!(await mayRemove(question, yes, "Nothing was changed."))) return 1;
  await undoFiles([place], force);
  return 0;
}

/** The files of projects that dragoman has written to, in any folder. */
export const writtenProjects = (environment: Environment): SettingsFile[] =>
  backupsIn(environment.home).flatMap(({ id, file: path }) => {
    if (!id.endsWith(suffix)) return [];
    const client = id.slice(0, -suffix.length) as ClientId;
    const place = placeOf(client, { id, format: clientOf(client).file!.format, path }, environment);
    return [{ ...place, undoneBy: `dragoman connect ${client} --project <name> --undo` }];
  });
