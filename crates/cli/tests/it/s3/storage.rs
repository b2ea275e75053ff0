//! A server of object storage: `s3s-fs`, which keeps objects as files, behind HTTP and signatures.

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::SimpleAuth;
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, GetObjectInput,
    GetObjectOutput, HeadObjectInput, HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output,
    PutObjectInput, PutObjectOutput,
};
use s3s::service::S3ServiceBuilder;
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder as RuntimeBuilder, Runtime};

/// May do everything.
pub const OWNER: &str = "owner";
/// May read and list.
pub const READER: &str = "reader";
/// May do nothing.
pub const STRANGER: &str = "stranger";
/// The key of each.
pub const SECRET: &str = "secret";
/// The bucket.
const BUCKET: &str = "results";

/// A running server, which ends when it is dropped.
pub struct Storage {
    folder: TempDir,
    pub endpoint: String,
    _runtime: Runtime,
}

impl Storage {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let mut service = S3ServiceBuilder::new(WithTags(FileSystem::new(folder.path()).unwrap()));
        let mut users = SimpleAuth::new();
        for user in [OWNER, READER, STRANGER] {
            users.register(user.to_owned(), SECRET.into());
        }
        service.set_auth(users);
        service.set_access(Rights);
        let service = service.build();
        let runtime = RuntimeBuilder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let service = service.clone();
                tokio::spawn(async move {
                    let server = Builder::new(TokioExecutor::new());
                    // The command may be killed.
                    let _ = server.serve_connection(TokioIo::new(socket), service).await;
                });
            }
        });
        Self {
            folder,
            endpoint,
            _runtime: runtime,
        }
    }

    /// The file of an object, or the folder of a prefix.
    pub fn path(&self, key: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(BUCKET).join(key)
    }
}

struct Rights;

#[async_trait::async_trait]
impl S3Access for Rights {
    async fn check(&self, request: &mut S3AccessContext<'_>) -> S3Result<()> {
        let user = request.credentials().map(|found| &*found.access_key);
        let is_reading =
            ["GetObject", "HeadObject", "ListObjectsV2"].contains(&request.s3_op().name());
        match user {
            Some(OWNER) => Ok(()),
            Some(READER) if is_reading => Ok(()),
            _ => Err(s3_error!(AccessDenied)),
        }
    }
}

/// The storage of `s3s-fs`, whose lists lack the tags that those of S3 have.
struct WithTags(FileSystem);

#[async_trait::async_trait]
impl S3 for WithTags {
    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let bucket = request.input.bucket.clone();
        let (method, uri) = (request.method.clone(), request.uri.clone());
        let mut answer = self.0.list_objects_v2(request).await?;
        for object in answer.output.contents.iter_mut().flatten() {
            let head = S3Request {
                input: HeadObjectInput {
                    bucket: bucket.clone(),
                    key: object.key.clone().unwrap_or_default(),
                    ..HeadObjectInput::default()
                },
                method: method.clone(),
                uri: uri.clone(),
                headers: Default::default(),
                extensions: Default::default(),
                credentials: None,
                region: None,
                service: None,
                trailing_headers: None,
            };
            object.e_tag = self.0.head_object(head).await?.output.e_tag;
        }
        Ok(answer)
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        self.0.get_object(request).await
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        self.0.head_object(request).await
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        self.0.put_object(request).await
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.0.delete_object(request).await
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        self.0.delete_objects(request).await
    }
}
