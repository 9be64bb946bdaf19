/** Where notices go: a webhook, the desktop. Each channel is a row; the log gets every notice anyway. */
import { tmpdir } from "node:os";
import { ProxyError } from "../../lib/errors";
import { singleLimit } from "../../lib/net/out/clock";
import { callOut } from "../../lib/net/out/fetch";
import type { Notice } from "./conditions";

export interface Webhook {
  url: string;
  /** Signs the body. */
  secret?: string;
  format: "json" | "slack" | "discord";
}

/** Milliseconds of one call. */
const timeoutMs = 10_000;
/** Milliseconds before each further try. */
const pauses = [1_000, 10_000];

/** The body of a webhook call, by its form. Slack and Discord take a text; mentions in it are not resolved. */
const bodies: Record<Webhook["format"], (notice: Notice, at: number, version: string) => object> = {
  json: ({ id, type, severity, title, message }, at, version) => ({
    id,
    type,
    severity,
    title,
    message,
    at: new Date(at).toISOString(),
    source: { name: "dragoman", version },
  }),
  slack: ({ title, message }) => ({ text: `*${escapeSlack(title)}*\n${escapeSlack(message)}` }),
  discord: ({ title, message }) => ({ content: `**${title}**\n${message}`, allowed_mentions: { parse: [] } }),
};

/** Slack's three special characters: https://api.slack.com/reference/surfaces/formatting#escaping */
const escapeSlack = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/**
 * Posts a notice. With a secret, `x-dragoman-signature` is `sha256=` and the HMAC of the body in hex.
 * @throws ProxyError after the last try, or at once if the receiver refuses the notice.
 */
export async function postNotice(
  { url, secret, format }: Webhook,
  notice: Notice,
  { at, version, wait = Bun.sleep }: { at: number; version: string; wait?: (ms: number) => Promise<void> },
): Promise<void> {
  const body = JSON.stringify(bodies[format](notice, at, version));
  const signature = secret && `sha256=${new Bun.CryptoHasher("sha256", secret).update(body).digest("hex")}`;
  const headers = {
    "content-type": "application/json",
    "user-agent": `dragoman/${version}`,
    ...(signature && { "x-dragoman-signature": signature }),
  };
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await callOut(url, {
        method: "POST",
        headers,
        body,
        limits: singleLimit(timeoutMs),
        who: "The webhook",
      });
      response.body.cancel();
      if (response.ok) return;
      throw new ProxyError("upstream", `The webhook answered with status ${response.status}.`, {
        status: response.status,
      });
    } catch (thrown) {
      const status = thrown instanceof ProxyError ? (thrown.details.status ?? 0) : 0;
      const pause = pauses[attempt];
      // Another try cannot change a refusal, except of too many requests.
      if (pause === undefined || (status >= 400 && status < 500 && status !== 429)) throw thrown;
      await wait(pause);
    }
  }
}

/** Title and message are arguments or variables of the program, never part of a script. */
const desktopCommands: Partial<Record<NodeJS.Platform, (title: string, message: string) => string[]>> = {
  linux: (title, message) => ["notify-send", "--app-name=dragoman", "--", title, message],
  darwin: (title, message) => [
    "osascript",
    ...["on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run"].flatMap(
      (line) => ["-e", line],
    ),
    title,
    message,
  ],
  win32: () => ["powershell", "-NoProfile", "-NonInteractive", "-Command", windowsToast],
};

const windowsToast = `
[Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime] | Out-Null
$xml = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$texts = $xml.GetElementsByTagName('text')
$texts[0].AppendChild($xml.CreateTextNode($env:DRAGOMAN_NOTICE_TITLE)) | Out-Null
$texts[1].AppendChild($xml.CreateTextNode($env:DRAGOMAN_NOTICE_MESSAGE)) | Out-Null
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier('dragoman').Show([Windows.UI.Notifications.ToastNotification]::new($xml))`;

/** @throws ProxyError if the system has no program for notifications, or the program fails. */
export async function showOnDesktop(
  { title, message }: Notice,
  platform: NodeJS.Platform = process.platform,
): Promise<void> {
  const command = desktopCommands[platform]?.(title, message);
  if (!command) throw new ProxyError("unable", `Desktop notices are not supported on ${platform}.`);
  const [program = ""] = command;
  if (!Bun.which(program, { PATH: process.env.PATH ?? "" }))
    throw new ProxyError("unable", `Desktop notices need \`${program}\`, which is not installed.`);
  const child = Bun.spawn(command, {
    cwd: tmpdir(),
    env: { ...process.env, DRAGOMAN_NOTICE_TITLE: title, DRAGOMAN_NOTICE_MESSAGE: message },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    timeout: timeoutMs,
  });
  if ((await child.exited) !== 0) throw new ProxyError("unable", `\`${program}\` could not show a notice.`);
}
