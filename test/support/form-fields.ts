/** The forms of the pages, as a browser without script submits them. */

/** What a browser would send of a page's last form. */
export async function fieldsIn(html: string): Promise<Record<string, string>> {
  const form: Record<string, string> = {};
  let select: string | undefined;
  let area: string | undefined;
  const decoded = (text: string) =>
    text.replace(
      /&(lt|gt|quot|#x27|amp);/g,
      (_, name: string) => ({ lt: "<", gt: ">", quot: '"', "#x27": "'", amp: "&" })[name]!,
    );
  await new HTMLRewriter()
    .on("input", {
      element(input) {
        const name = input.getAttribute("name");
        if (name === null) return;
        if (input.getAttribute("type") === "checkbox") {
          if (input.hasAttribute("checked")) form[name] = "on";
        } else form[name] = decoded(input.getAttribute("value") ?? "");
      },
    })
    .on("select", {
      element(element) {
        select = element.getAttribute("name") ?? undefined;
      },
    })
    .on("option", {
      element(option) {
        if (select === undefined || option.getAttribute("value") === null) return;
        if (form[select] === undefined || option.hasAttribute("selected"))
          form[select] = decoded(option.getAttribute("value")!);
      },
    })
    .on("textarea", {
      element(element) {
        area = element.getAttribute("name")!;
        form[area] = "";
      },
      text(chunk) {
        if (area !== undefined) form[area] += decoded(chunk.text);
      },
    })
    .transform(new Response(html))
    .text();
  return form;
}

/** The token of a page's forms. @throws if the page has none. */
export function formTokenIn(html: string): string {
  const [, token] = /name="form_token" value="([^"]+)"/.exec(html) ?? [];
  if (token === undefined) throw new Error(`This page has no form: ${html.slice(0, 300)}`);
  return token;
}

/**
 * Signs in to the pages as a browser does. @param url Of the server.
 * @returns The header that a browser sends from then on. @throws if the token or key is refused.
 */
export async function signedIn(
  url: string,
  token: string,
  headers: Record<string, string> = {},
): Promise<{ cookie: string }> {
  const body = new URLSearchParams({ token });
  const answer = await fetch(`${url}/admin/sign-in`, { method: "POST", redirect: "manual", headers, body });
  const [cookie] = answer.headers.get("set-cookie")?.split(";") ?? [];
  if (cookie === undefined) throw new Error(`Signing in is answered with ${answer.status}.`);
  return { cookie };
}
