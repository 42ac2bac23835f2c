# Quarry as a server, a worker or a command. Runs as a user without rights; everything it keeps is in /data, what it
# takes in by path may be in /app/data/sources, and its quarry.yaml is /app/quarry.yaml.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The scripts of packages are not run: what they would fetch comes with the packages or is not needed.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN ./node_modules/.bin/tsc --project tsconfig.build.json \
    && npm prune --omit=dev --ignore-scripts \
    # The model runtime brings its libraries for other systems along: two thirds of it.
    && rm -rf node_modules/onnxruntime-node/bin/napi-v6/darwin node_modules/onnxruntime-node/bin/napi-v6/win32

FROM node:24-bookworm-slim
ENV NODE_ENV=production \
    QUARRY_DATA=/data \
    QUARRY_HOST=0.0.0.0
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json ./
COPY bin ./bin
COPY migrations ./migrations
RUN mkdir -p /data data/sources && chown -R node:node /data data && ln -s /app/bin/quarry.js /usr/local/bin/quarry
USER node
VOLUME /data
EXPOSE 7310
ENTRYPOINT ["quarry"]
# Server, page, workers and janitor in one process. It listens beyond this container, so it wants QUARRY_API_KEY.
CMD ["up"]
