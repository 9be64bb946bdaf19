p='src/admin/api.ts'; s=open(p).read()
s=s.replace("<<<<<<< HEAD\n","")
a=s.index("export function answerLive(app: App, request: Request, caller: Visitor): Response {\n"); b=s.index("/** @param session")
s=s[:a]+s[b:]
import re
s=re.sub(r">>>>>>> [^\n]*\n","",s)
open(p,'w').write(s)
