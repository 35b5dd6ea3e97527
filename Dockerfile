# docker build --target cpu -t vocabshift:cpu .      docker build --target cuda -t vocabshift:cuda .
# docker run --rm -v "$PWD:/work" vocabshift:cpu demo -o demo-out
# docker run --rm --gpus all -v "$PWD:/work" vocabshift:cuda cpt cpt.toml
FROM python:3.12-slim-bookworm AS base
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /source
COPY constraints.txt ./

FROM base AS wheel
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY cpp cpp
RUN pip wheel --no-deps -w /wheels .

FROM base AS cpu
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install -c constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu \
    "$(echo /wheels/vocabshift-*.whl)[train,gguf,unigram]"
RUN useradd --create-home vocabshift
USER vocabshift
WORKDIR /work
ENTRYPOINT ["vocabshift"]

# PyPI's torch brings the CUDA libraries; the host brings the driver. Triton compiles small programs.
FROM base AS cuda
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install -c constraints.txt "$(echo /wheels/vocabshift-*.whl)[train,gpu,gguf,unigram]"
RUN useradd --create-home vocabshift
USER vocabshift
WORKDIR /work
ENTRYPOINT ["vocabshift"]
