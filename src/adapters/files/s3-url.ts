import { QuarryError } from "../../errors.ts";

/** s3://bucket/prefix, the prefix in letters that mean the same in a path, a URL and a signature. */
export const S3_URL = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(\w[\w.-]*(?:\/\w[\w.-]*)*))?\/?$/;

export function parsedS3Url(url: string): { bucket: string; prefix: string } {
  const [, bucket = "", prefix = ""] = S3_URL.exec(url) ?? [];
  if (bucket !== "") return { bucket, prefix };
  throw new QuarryError("invalid_input", `${JSON.stringify(url)}: give s3://BUCKET/PREFIX`);
}
