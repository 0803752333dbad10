// The client of `specchk lsp`: it starts the server, recognises specs, and shows reports and pictures in panels.
//
// Everything that knows specs is the server's.  `.spec` is RPM's and PyInstaller's, too, so the extension claims no file
// by its name: VS Code recognises ours by the first line, and `recognise` does so while that line is being typed.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";

const FIRST = /^\uFEFF?(?:[ \t]*(?:#.*)?\r?\n)*spec[ \t]+[A-Za-z_]\w*[ \t]*(?:#.*)?$/m;
const LANGUAGE = "specchk";

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("specchk.pick", pick),
    vscode.commands.registerCommand("specchk.restart", restart),
    vscode.workspace.onDidOpenTextDocument(recognise),
    vscode.workspace.onDidChangeTextDocument((event) => recognise(event.document)),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("specchk.command")) void restart();
    }),
  );
  vscode.workspace.textDocuments.forEach(recognise);
  await restart();
}

export function deactivate(): Thenable<void> | undefined {
  return client?.stop();
}

/** Set the language of a spec that was opened, or begun, without its first line. */
function recognise(document: vscode.TextDocument): void {
  if (document.languageId !== "plaintext" || !document.fileName.endsWith(".spec")) return;
  const head = document.getText(new vscode.Range(0, 0, 20, 0));
  if (FIRST.test(head)) void vscode.languages.setTextDocumentLanguage(document, LANGUAGE);
}

async function restart(): Promise<void> {
  await client?.stop();
  const [command = LANGUAGE, ...args] = vscode.workspace.getConfiguration("specchk").get<string[]>("command", []);
  const server: ServerOptions = { command, args };
  const options: LanguageClientOptions = {
    documentSelector: [{ language: LANGUAGE, scheme: "file" }],
    initializationOptions: { panel: true },
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.spec") },
    middleware: {
      executeCommand: async (name, args, next) => {
        await vscode.workspace.saveAll(false); // a run is of what is on the disk
        const answer: { show?: string } | undefined = await next(name, args);
        if (answer?.show !== undefined) show(answer.show);
        return answer;
      },
    },
  };
  client = new LanguageClient(LANGUAGE, server, options);
  try {
    await client.start();
  } catch (error) {
    const choice = await vscode.window.showErrorMessage(
      `\`${[command, ...args].join(" ")}\` does not start: ${String(error)}. ` +
        "Install it with `pip install 'specchk[lsp]'`, or give its path in the setting specchk.command.",
      "Open the setting",
    );
    if (choice !== undefined) await vscode.commands.executeCommand("workbench.action.openSettings", "specchk.command");
  }
}

/** Let the user choose one of the commands that the server offers in the current text. */
async function pick(): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document === undefined) return;
  const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>(
    "vscode.executeCodeLensProvider", document.uri, Number.MAX_SAFE_INTEGER,
  );
  const items = lenses.flatMap((lens) =>
    lens.command === undefined
      ? []
      : [{ label: `${lens.command.title} ${document.getText(lens.range)}`, command: lens.command }],
  );
  const item = await vscode.window.showQuickPick(items, { placeHolder: "Run, draw or explore" });
  if (item !== undefined) await vscode.commands.executeCommand(item.command.command, ...(item.command.arguments ?? []));
}

/** Show a report or a picture in a panel beside the text, and a served page in the editor's browser. */
function show(address: string): void {
  if (!address.startsWith("file:")) {
    void vscode.env.openExternal(vscode.Uri.parse(address));
    return;
  }
  const path = vscode.Uri.parse(address).fsPath;
  const panel = vscode.window.createWebviewPanel(
    "specchk.report", basename(path).replace(/-\d+\.\w+$/, ""), { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
    { enableScripts: true, localResourceRoots: [] },
  );
  const text = readFileSync(path, "utf8");
  // The page has its own colours, for a white background; a picture is put into one.
  const page = path.endsWith(".svg") ? `<style>svg { max-width: 100%; height: auto }</style><body>${text.slice(text.indexOf("<svg"))}</body>` : text;
  panel.webview.html = page.replace(/<body/, '<body style="background: white; color: black"');
}
