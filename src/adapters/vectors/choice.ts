/** Where vectors are kept: a file in the data folder, the PostgreSQL that holds the queues, or a Qdrant. */
export const VECTOR_STORES = ["embedded", "pgvector", "qdrant"] as const;
export type VectorStoreName = (typeof VECTOR_STORES)[number];
