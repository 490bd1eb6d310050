/** The text of a module that exports one type for each schema of a document. */
export function typesOf(document: { components: { schemas: Record<string, unknown> } }): string;
