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
