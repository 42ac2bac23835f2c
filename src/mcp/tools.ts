import { addContentTool } from "./add-content.ts";
import { documentTools } from "./document-tools.ts";
import { ingestPathTool } from "./ingest-path.ts";
import { queueTools } from "./queue-tools.ts";
import { searchTool } from "./search-tool.ts";
import { statusTool } from "./status.ts";
import type { Tool } from "./tool.ts";
import type { McpParts } from "./tool-parts.ts";

/** Everything that a client can do, in the order in which it is shown. */
export function allTools(parts: McpParts): Tool[] {
  return [
    searchTool(parts),
    addContentTool(parts),
    ingestPathTool(parts),
    statusTool(parts),
    ...queueTools(parts),
    ...documentTools(parts),
  ];
}
