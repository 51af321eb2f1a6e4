(** Near stationary points of convex functions are minima. *)

From Coq Require Import Reals QArith Qreals Lra Lia List Arith Bool.
From Verified Require Import Definitions Programs Calculus Numbers NumbersSound Check Sound.
Import ListNotations.
Open Scope R_scope.

(** ** Inner products *)

Lemma sum_const n c : sum n (fun _ => c) = INR n * c.
Proof. induction n; [simpl; ring|]. cbn [sum]. rewrite IHn, S_INR. ring. Qed.

Lemma cauchy_schwarz n a b : sum n (fun i => a i * b i) * sum n (fun i => a i * b i)
  <= dot_n n a * dot_n n b.
Proof.
  unfold dot_n. induction n; simpl; [lra|].
  set (s := sum n (fun i => a i * b i)) in *. set (p := sum n (fun i => a i * a i)) in *.
  set (q := sum n (fun i => b i * b i)) in *.
  assert (P : 0 <= p) by (apply sum_nonneg; intros; nra).
  assert (Q : 0 <= q) by (apply sum_nonneg; intros; nra).
  set (x := a n). set (y := b n).
  assert (2 * (s * (x * y)) <= p * (y * y) + q * (x * x)); [|lra].
  assert (H : (s * (x * y)) * (s * (x * y)) <= (p * (y * y)) * (q * (x * x))).
  { replace (s * (x * y) * (s * (x * y))) with (s * s * (x * y * (x * y))) by ring.
    replace (p * (y * y) * (q * (x * x))) with (p * q * (x * y * (x * y))) by ring.
    apply Rmult_le_compat_r; [|exact IHn]. apply Rle_0_sqr. }
  set (u := p * (y * y)) in *. set (w := q * (x * x)) in *. set (e := s * (x * y)) in *.
  assert (0 <= u) by (unfold u; nra). assert (0 <= w) by (unfold w; nra).
  pose proof (Rle_0_sqr (u - w)) as K. unfold Rsqr in K.
  apply Rnot_lt_le. intros L.
  assert (0 < (2 * e - (u + w)) * (2 * e + (u + w))) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

Lemma inner_le n a b : sum n (fun i => a i * b i) <= sqrt (dot_n n a) * sqrt (dot_n n b).
Proof.
  assert (A : 0 <= dot_n n a) by (apply sum_nonneg; intros; nra).
  assert (B : 0 <= dot_n n b) by (apply sum_nonneg; intros; nra).
  rewrite <- sqrt_mult by assumption.
  eapply Rle_trans; [apply Rle_abs|]. rewrite <- sqrt_Rsqr_abs. apply sqrt_le_1_alt.
  apply cauchy_schwarz.
Qed.

(** ** Functions with supporting planes *)

Section Space.

Variable d : nat.
Notation dot := (dot d).

Definition flat (u : point -> R) : Prop :=
  exists g, forall x z, u z = u x + dot g (minus z x).

Definition supported (u : point -> R) : Prop :=
  forall x, exists g, forall z, u z >= u x + dot g (minus z x).

Lemma dot_zero u : dot (fun _ => 0) u = 0.
Proof. unfold Definitions.dot. rewrite (sum_ext _ _ (fun _ => 0)); [apply sum_zero | intros; ring]. Qed.

Lemma flat_const c : flat (fun _ => c).
Proof. exists (fun _ => 0). intros. rewrite dot_zero. ring. Qed.

Lemma flat_coordinate i : (i < d)%nat -> flat (fun z => z i).
Proof.
  intros I. exists (unit_vector i). intros x z. unfold Definitions.dot. rewrite sum_unit by exact I.
  unfold minus. ring.
Qed.

Lemma flat_add u w : flat u -> flat w -> flat (fun z => u z + w z).
Proof.
  intros (g & G) (h & H). exists (fun i => g i + h i). intros x z.
  rewrite (G x z), (H x z), dot_plus. ring.
Qed.

Lemma flat_scale c u : flat u -> flat (fun z => c * u z).
Proof. intros (g & G). exists (fun i => c * g i). intros x z. rewrite (G x z), dot_scal. ring. Qed.

Lemma supported_flat u : flat u -> supported u.
Proof. intros (g & G) x. exists g. intros z. rewrite (G x z). lra. Qed.

Lemma supported_add u w : supported u -> supported w -> supported (fun z => u z + w z).
Proof.
  intros A B x. destruct (A x) as (g & G), (B x) as (h & H). exists (fun i => g i + h i). intros z.
  rewrite dot_plus. specialize (G z). specialize (H z). lra.
Qed.

Lemma supported_scale c u : 0 <= c -> supported u -> supported (fun z => c * u z).
Proof.
  intros P A x. destruct (A x) as (g & G). exists (fun i => c * g i). intros z.
  rewrite dot_scal. specialize (G z). nra.
Qed.

Lemma supported_max n (u : nat -> point -> R) : (forall j, (j <= n)%nat -> supported (u j)) ->
  supported (fun z => largest n (fun j => u j z)).
Proof.
  intros A x.
  assert (K : forall m, exists k, (k <= m)%nat /\ largest m (fun j => u j x) = u k x).
  { induction m; simpl; [exists 0%nat; auto|]. destruct IHm as (k & Hk & E).
    destruct (Rle_dec (largest m (fun j => u j x)) (u (S m) x)).
    - exists (S m). rewrite Rmax_right by assumption. auto.
    - exists k. rewrite Rmax_left by lra. auto. }
  destruct (K n) as (k & Hk & E). destruct (A k Hk x) as (g & G). exists g. intros z.
  rewrite E. specialize (G z).
  assert (u k z <= largest n (fun j => u j z)); [|lra].
  clear - Hk. induction n; simpl; [now replace k with 0%nat by lia; apply Rle_refl|].
  destruct (Nat.eq_dec k (S n)) as [->|]; [apply Rmax_r|].
  eapply Rle_trans; [apply IHn; lia | apply Rmax_l].
Qed.

(** Supported as a function of affine functions u 0, ..., u (n - 1). *)
Lemma supported_of n (u : nat -> point -> R) F : (forall j, (j < n)%nat -> flat (u j)) ->
  (forall x, exists c : nat -> R, forall z, F z >= F x + sum n (fun j => c j * (u j z - u j x))) ->
  supported F.
Proof.
  intros A B x. destruct (B x) as (c & C).
  destruct (choose n (fun j g => forall x z, u j z = u j x + dot g (minus z x)) (fun _ => 0)) as (g & G).
  { intros j J. destruct (A j J) as (h & H). now exists h. }
  exists (fun i => sum n (fun j => c j * g j i)). intros z. specialize (C z).
  replace (dot (fun i => sum n (fun j => c j * g j i)) (minus z x))
    with (sum n (fun j => c j * (u j z - u j x))); [exact C|].
  unfold Definitions.dot. symmetry.
  rewrite (sum_ext d _ (fun i => sum n (fun j => c j * g j i * minus z x i))).
  - rewrite sum_swap. apply sum_ext. intros j J. rewrite (G j J x z). unfold Definitions.dot.
    rewrite <- (Rplus_0_r (c j * _)).
    replace (c j * (u j x + sum d (fun i => g j i * minus z x i) - u j x) + 0)
      with (c j * sum d (fun i => g j i * minus z x i)) by ring.
    rewrite <- sum_scal. apply sum_ext. intros. ring.
  - intros i _. rewrite Rmult_comm, <- sum_scal. apply sum_ext. intros. ring.
Qed.

Lemma supported_one u phi (h : R -> R) : flat u ->
  (forall t s, phi s >= phi t + h t * (s - t)) -> supported (fun z => phi (u z)).
Proof.
  intros A H. apply (supported_of 1 (fun _ => u)); [auto|]. intros x. exists (fun _ => h (u x)).
  intros z. simpl. specialize (H (u x) (u z)). lra.
Qed.

Lemma supported_norm n (u : nat -> point -> R) : (forall j, (j < n)%nat -> flat (u j)) ->
  supported (fun z => sqrt (sum n (fun j => u j z * u j z))).
Proof.
  intros A. apply (supported_of n u); [exact A|]. intros x.
  set (N := sqrt (sum n (fun j => u j x * u j x))).
  destruct (Req_dec N 0) as [Z|Z].
  - exists (fun _ => 0). intros z.
    rewrite (sum_scal n 0 (fun j => u j z - u j x)), Z. pose proof (sqrt_pos (sum n (fun j => u j z * u j z))). lra.
  - exists (fun j => / N * u j x). intros z.
    assert (P : 0 < N) by (pose proof (sqrt_pos (sum n (fun j => u j x * u j x))); fold N in H; lra).
    assert (S : sum n (fun j => u j x * u j x) = N * N).
    { unfold N. rewrite sqrt_sqrt; [reflexivity|]. apply sum_nonneg. intros. nra. }
    pose proof (inner_le n (fun j => u j x) (fun j => u j z)) as C. unfold dot_n in C. fold N in C.
    set (M := sqrt (sum n (fun j => u j z * u j z))) in *.
    replace (sum n (fun j => / N * u j x * (u j z - u j x)))
      with (/ N * (sum n (fun j => u j x * u j z) - N * N)).
    + apply Rle_ge. apply Rmult_le_reg_l with N; [exact P|].
      replace (N * (N + / N * (sum n (fun j => u j x * u j z) - N * N)))
        with (sum n (fun j => u j x * u j z)) by (field; lra). exact C.
    + rewrite (sum_ext n (fun j => / N * u j x * (u j z - u j x))
                 (fun j => / N * (u j x * u j z + -1 * (u j x * u j x)))) by (intros; ring).
      rewrite sum_scal, sum_plus, sum_scal, S. ring.
Qed.

Lemma supported_logsumexp n (u : nat -> point -> R) : (0 < n)%nat ->
  (forall j, (j < n)%nat -> flat (u j)) -> supported (fun z => ln (sum n (fun j => exp (u j z)))).
Proof.
  intros Pn A. apply (supported_of n u); [exact A|]. intros x.
  assert (Pos : forall z, 0 < sum n (fun j => exp (u j z))).
  { intros z. destruct n; [lia|]. simpl. pose proof (exp_pos (u n z)).
    assert (0 <= sum n (fun j => exp (u j z)))
      by (apply sum_nonneg; intros; left; apply exp_pos). lra. }
  set (S := sum n (fun j => exp (u j x))). pose proof (Pos x) as PS. fold S in PS.
  exists (fun j => exp (u j x) / S). intros z.
  set (m := sum n (fun j => exp (u j x) / S * (u j z - u j x))).
  assert (K : S * exp m <= sum n (fun j => exp (u j z))).
  { apply Rle_trans with (sum n (fun j => exp (u j x) * (exp m * (1 + (u j z - u j x - m))))).
    - right.
      rewrite (sum_ext n _ (fun j => exp m * (1 - m) * exp (u j x)
                 + exp m * S * (exp (u j x) / S * (u j z - u j x)))) by (intros; field; lra).
      rewrite sum_plus, !sum_scal. fold S. fold m. ring.
    - apply sum_le. intros j _.
      replace (u j z) with (u j x + (m + (u j z - u j x - m))) at 2 by ring.
      rewrite !exp_plus. apply Rmult_le_compat_l; [left; apply exp_pos|].
      apply Rmult_le_compat_l; [left; apply exp_pos|]. apply exp_ineq1_le. }
  apply Rle_ge. fold S. replace (ln S + m) with (ln (S * exp m))
    by (rewrite ln_mult, ln_exp; [reflexivity | exact PS | apply exp_pos]).
  destruct K as [K|K]; [|rewrite K; lra]. left. apply ln_increasing; [|exact K].
  apply Rmult_lt_0_compat; [exact PS | apply exp_pos].
Qed.

(** ** From stationarity to minimality *)

(** A supporting plane at a point of differentiability has the slope of the gradient. *)
Lemma gradient_supports f x G : supported f -> gradient d f x G ->
  forall z, f z >= f x + dot G (minus z x).
Proof.
  intros A D z. destruct (A x) as (g & S). specialize (S z) as Sz.
  enough (dot G (minus z x) <= dot g (minus z x)) by lra.
  apply le_epsilon. intros e He.
  (* f lies above the plane behind x, too: at x - t (z - x) *)
  set (D0 := dist d z x). pose proof (dist_nonneg d z x) as P. fold D0 in P.
  destruct (D (e / (D0 + 1))) as (r & Hr & B); [apply Rdiv_lt_0_compat; lra|].
  set (t := r / (2 * (D0 + 1))). assert (Ht : 0 < t) by (apply Rdiv_lt_0_compat; lra).
  set (w := fun i => x i - t * (z i - x i)).
  assert (M : forall h, dot h (minus w x) = - t * dot h (minus z x)).
  { intros h. unfold Definitions.dot. rewrite <- sum_scal. apply sum_ext. intros i _.
    unfold minus, w. ring. }
  assert (W : dist d w x = t * D0).
  { unfold D0, dist, norm. replace (dot (minus w x) (minus w x)) with (t * t * dot (minus z x) (minus z x)).
    - rewrite sqrt_mult, sqrt_square; [reflexivity | lra | nra | apply dot_nonneg].
    - unfold Definitions.dot. rewrite <- sum_scal. apply sum_ext. intros i _. unfold minus, w. ring. }
  assert (L : dist d w x < r).
  { rewrite W. apply Rle_lt_trans with (t * (D0 + 1)); [nra|].
    replace (t * (D0 + 1)) with (r / 2) by (unfold t; field; lra). lra. }
  specialize (B w L). specialize (S w). rewrite M in S. rewrite M, W in B.
  apply (Rle_trans _ _ _ (Rle_abs _)) in B.
  assert (e / (D0 + 1) * (t * D0) <= t * e).
  { replace (e / (D0 + 1) * (t * D0)) with (t * e * (D0 / (D0 + 1))) by (field; lra).
    assert (D0 / (D0 + 1) <= 1) by (apply Rmult_le_reg_r with (D0 + 1); [lra|];
      unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra).
    assert (0 < t * e) by now apply Rmult_lt_0_compat. nra. }
  apply Rmult_le_reg_l with t; [exact Ht|]. lra.
Qed.

(** So has every limit of gradients, and every convex combination of such limits. *)
Lemma limiting_supports f y g : supported f -> limiting_gradient d f y g ->
  forall z, f z >= f y + dot g (minus z y).
Proof.
  intros A (x & h & H & Cx & Ch) z. destruct (A y) as (s & S).
  set (K := sum d (fun i => Rabs (s i))).
  assert (PK : 0 <= K) by (apply sum_nonneg; intros; apply Rabs_pos).
  set (D := dist d z y). pose proof (dist_nonneg d z y) as PD. fold D in PD.
  apply Rle_ge. apply le_epsilon. intros e He.
  set (G := sum d (fun i => Rabs (g i))).
  assert (PG : 0 <= G) by (apply sum_nonneg; intros; apply Rabs_pos).
  (* f z >= f x_n + <h_n, z - x_n>, f x_n >= f y - K |x_n - y| *)
  set (c := K + G + 1 + INR d + INR d * D).
  assert (Pd : 0 <= INR d) by apply pos_INR.
  assert (Pc : 0 < c) by (unfold c; assert (0 <= INR d * D) by (apply Rmult_le_pos; lra); lra).
  set (k := Rmin 1 (e / c)).
  assert (Hk : 0 < k) by (apply Rmin_pos; [lra | now apply Rdiv_lt_0_compat]).
  assert (k <= 1) by apply Rmin_l.
  assert (kc : k * c <= e).
  { apply Rle_trans with (e / c * c); [|right; field; lra].
    apply Rmult_le_compat_r; [lra | apply Rmin_r]. }
  destruct (Cx k Hk) as [N1 H1]. destruct (Ch k Hk) as [N2 H2].
  set (n := (N1 + N2)%nat). specialize (H1 n ltac:(unfold n; lia)). specialize (H2 n ltac:(unfold n; lia)).
  unfold R_dist in H1, H2. rewrite Rminus_0_r in H1, H2.
  rewrite Rabs_pos_eq in H1, H2 by apply dist_nonneg.
  pose proof (gradient_supports f (x n) (h n) A (H n) z) as Sz. pose proof (S (x n)) as Sx.
  pose proof (dot_bound d s (minus (x n) y)) as B1. fold (dist d (x n) y) in B1. fold K in B1.
  assert (C1 : forall i, (i < d)%nat -> Rabs (h n i - g i) <= k)
    by (intros i I; eapply Rle_trans; [exact (coordinate_le d (minus (h n) g) i I) | left; exact H2]).
  assert (C2 : forall i, (i < d)%nat -> Rabs (x n i - y i) <= k)
    by (intros i I; eapply Rle_trans; [exact (coordinate_le d (minus (x n) y) i I) | left; exact H1]).
  assert (C3 : forall i, (i < d)%nat -> Rabs (z i - y i) <= D)
    by (intros i I; exact (coordinate_le d (minus z y) i I)).
  assert (T : dot g (minus z y) - dot (h n) (minus z (x n)) <= G * k + INR d * (k * (D + k))).
  { unfold Definitions.dot.
    assert (E : sum d (fun i => g i * minus z y i) - sum d (fun i => h n i * minus z (x n) i)
      = sum d (fun i => g i * (x n i - y i) + (g i - h n i) * (z i - x n i))).
    { unfold Rminus at 1. replace (- sum d (fun i => h n i * minus z (x n) i))
        with (sum d (fun i => -1 * (h n i * minus z (x n) i))) by (rewrite sum_scal; ring).
      rewrite <- sum_plus. apply sum_ext. intros. unfold minus. ring. }
    rewrite E, sum_plus. apply Rplus_le_compat.
    - unfold G. rewrite Rmult_comm, <- sum_scal. apply sum_le. intros i I.
      eapply Rle_trans; [apply Rle_abs|]. rewrite Rabs_mult, Rmult_comm.
      apply Rmult_le_compat_r; [apply Rabs_pos | auto].
    - apply Rle_trans with (sum d (fun _ => k * (D + k))).
      + apply sum_le. intros i I. eapply Rle_trans; [apply Rle_abs|]. rewrite Rabs_mult.
        apply Rmult_le_compat; try apply Rabs_pos; [rewrite Rabs_minus_sym; auto|].
        replace (z i - x n i) with ((z i - y i) + - (x n i - y i)) by ring.
        eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
        apply Rplus_le_compat; auto.
      + rewrite sum_const. lra. }
  assert (Y : - dot s (minus (x n) y) <= K * k).
  { apply Rle_trans with (K * dist d (x n) y); [|apply Rmult_le_compat_l; lra].
    eapply Rle_trans; [|exact B1]. rewrite <- Rabs_Ropp. apply Rle_abs. }
  assert (Z : G * k + INR d * (k * (D + k)) + K * k <= k * c).
  { unfold c. assert (INR d * (k * k) <= INR d * k) by (apply Rmult_le_compat_l; [exact Pd | nra]). lra. }
  lra.
Qed.

Lemma hull_supports f y u : supported f -> clarke d f y u ->
  forall z, f z >= f y + dot u (minus z y).
Proof.
  intros A (n & w & g & W & One & U) z.
  replace (dot u (minus z y)) with (sum n (fun j => w j * dot (g j) (minus z y))).
  - assert (sum n (fun j => w j * dot (g j) (minus z y)) <= sum n (fun j => w j * (f z - f y))).
    { apply sum_le. intros j J. destruct (W j J) as [P L]. apply Rmult_le_compat_l; [exact P|].
      pose proof (limiting_supports f y (g j) A L z). lra. }
    rewrite (sum_ext n (fun j => w j * (f z - f y)) (fun j => (f z - f y) * w j)) in H
      by (intros; ring). rewrite sum_scal, One in H. lra.
  - unfold Definitions.dot.
    rewrite (sum_ext d (fun i => u i * _) (fun i => sum n (fun j => w j * g j i * minus z y i))).
    + rewrite sum_swap. apply sum_ext. intros j _. rewrite <- sum_scal. apply sum_ext. intros. ring.
    + intros i I. rewrite (U i I), Rmult_comm, <- sum_scal. apply sum_ext. intros. ring.
Qed.

Lemma stationary_minimal f x eps delta : supported f -> near_stationary d f x eps delta ->
  exists y, dist d y x <= delta /\ minimal d f y eps.
Proof.
  intros A (y & u & D & C & N). exists y. split; [exact D|]. intros z.
  pose proof (hull_supports f y u A C z) as H.
  pose proof (inner_le d u (fun i => - minus z y i)) as I.
  assert (E1 : sum d (fun i => u i * - minus z y i) = - dot u (minus z y)).
  { unfold Definitions.dot. rewrite <- (Rmult_1_l (sum d (fun i => u i * minus z y i))).
    rewrite Ropp_mult_distr_l, <- sum_scal. apply sum_ext. intros. ring. }
  assert (E2 : sqrt (dot_n d (fun i => - minus z y i)) = dist d z y).
  { unfold dist, norm, Definitions.dot, dot_n. f_equal. apply sum_ext. intros. ring. }
  cbv beta in I. rewrite E1, E2 in I. change (sqrt (dot_n d u)) with (norm d u) in I.
  pose proof (dist_nonneg d z y) as P.
  pose proof (Rmult_le_compat_r _ _ _ P N). lra.
Qed.

(** ** Pieces *)

Definition der (p : list Q) (t : R) : R := Q2R (nth 1 p 0%Q) + 2 * Q2R (nth 2 p 0%Q) * t.

Lemma quadratic p t : (length p <= 3)%nat ->
  poly p t = Q2R (nth 0 p 0%Q) + Q2R (nth 1 p 0%Q) * t + Q2R (nth 2 p 0%Q) * (t * t).
Proof.
  destruct p as [|a [|b [|c [|e p]]]]; intros L; simpl in *; rewrite ?R_0; try ring. lia.
Qed.

Lemma cup_piece_spec p : cup_piece p = true -> (length p <= 3)%nat /\ 0 <= Q2R (nth 2 p 0%Q).
Proof.
  unfold cup_piece. rewrite andb_true_iff, Nat.leb_le. intros [L C]. apply R_le in C.
  rewrite R_0 in C. auto.
Qed.

Lemma piece_supports p t s : cup_piece p = true -> poly p s >= poly p t + der p t * (s - t).
Proof.
  intros H. destruct (cup_piece_spec p H) as [L C]. rewrite !quadratic by exact L. unfold der.
  assert (0 <= Q2R (nth 2 p 0%Q) * ((s - t) * (s - t)))
    by (apply Rmult_le_pos; [exact C | apply Rle_0_sqr]). lra.
Qed.

Lemma der_rises p t s : cup_piece p = true -> t <= s -> der p t <= der p s.
Proof. intros H L. destruct (cup_piece_spec p H) as [_ C]. unfold der. nra. Qed.

Fixpoint slopes (bs : list Q) (ps : list (list Q)) (t : R) : R :=
  match bs, ps with
  | b :: bs', p :: ps' => if Rle_dec t (Q2R b) then der p t else slopes bs' ps' t
  | _, p :: _ => der p t
  | _, [] => 0
  end.

Lemma value_at_eq p b : Q2R (value_at p b) = poly p (Q2R b).
Proof.
  unfold value_at. induction p; simpl; [apply R_0|]. now rewrite Q2R_plus, Q2R_mult, IHp.
Qed.

Lemma slope_at_eq p b : Q2R (slope_at p b) = der p (Q2R b).
Proof.
  unfold slope_at, der. rewrite Q2R_plus, !Q2R_mult. replace (Q2R 2) with 2; [reflexivity|].
  unfold Q2R. simpl. lra.
Qed.

Lemma pieces_support bs : forall ps, ascending bs = true -> cup_pieces bs ps = true ->
  forall t s, piecewise bs ps s >= piecewise bs ps t + slopes bs ps t * (s - t).
Proof.
  induction bs as [|b bs IH]; intros [|p [|q ps]] A H t s; try discriminate.
  - now apply piece_supports.
  - change (cup_piece p && Qeq_bool (value_at p b) (value_at q b)
            && Qle_bool (slope_at p b) (slope_at q b) && cup_pieces bs (q :: ps) = true) in H.
    rewrite !andb_true_iff in H. destruct H as [[[Cp Ev] Es] H].
    apply Qeq_bool_eq, Qeq_eqR in Ev. rewrite !value_at_eq in Ev.
    apply R_le in Es. rewrite !slope_at_eq in Es. set (B := Q2R b) in *.
    assert (A' : ascending bs = true).
    { destruct bs as [|b2 bs]; [reflexivity|]. simpl in A. apply andb_true_iff in A. apply A. }
    specialize (IH (q :: ps) A' H).
    assert (First : piecewise bs (q :: ps) B = poly q B /\ slopes bs (q :: ps) B = der q B).
    { destruct bs as [|b2 bs]; [split; reflexivity|]. simpl in A. apply andb_true_iff in A.
      destruct A as [A _]. apply (R_below b b2) in A. fold B in A. simpl.
      destruct (Rle_dec B (Q2R b2)); [split; reflexivity | lra]. }
    destruct First as [V D].
    set (psi := piecewise bs (q :: ps)) in *. set (h := slopes bs (q :: ps)) in *.
    cbn [piecewise slopes]. fold psi. fold h. fold B.
    destruct (Rle_dec s B) as [S|S], (Rle_dec t B) as [T|T].
    + now apply piece_supports.
    + pose proof (piece_supports p B s Cp). pose proof (IH t B). pose proof (IH B t) as X.
      rewrite V, D in X. rewrite V in H1.
      assert (der q B <= h t).
      { apply Rmult_le_reg_r with (t - B); [lra|]. lra. }
      assert (der p B * (s - B) >= der q B * (s - B)) by nra.
      assert (der q B * (s - B) >= h t * (s - B)) by nra. lra.
    + pose proof (IH B s) as X. rewrite V, D in X. pose proof (piece_supports p t B Cp).
      pose proof (der_rises p t B Cp T).
      assert (der q B * (s - B) >= der p t * (s - B)) by nra. lra.
    + apply IH.
Qed.

(** ** Programs *)

Definition shaped (s : shape) (u : point -> R) : Prop :=
  match s with Flat => flat u | Cup => supported u | Other => True end.

Lemma shaped_flat s u : is_flat s = true -> shaped s u -> flat u.
Proof. destruct s; simpl; auto; discriminate. Qed.

Lemma shaped_cup s u : is_cup s = true -> shaped s u -> supported u.
Proof. destruct s; simpl; auto using supported_flat; discriminate. Qed.

Lemma flat_row row (u : nat -> point -> R) : (forall k q, In (k, q) row -> flat (u k)) ->
  flat (fun z => row_sum row (fun k => u k z)).
Proof.
  induction row as [|[k q] row IH]; intros H; simpl; [apply flat_const|].
  apply (flat_add (fun z => Q2R q * u k z)); [apply flat_scale; eapply H; now left|].
  apply IH. intros. eapply H. right. eassumption.
Qed.

Lemma supported_row row (u : nat -> point -> R) :
  (forall k q, In (k, q) row -> 0 <= Q2R q /\ supported (u k)) ->
  supported (fun z => row_sum row (fun k => u k z)).
Proof.
  induction row as [|[k q] row IH]; intros H; simpl; [apply supported_flat, flat_const|].
  apply (supported_add (fun z => Q2R q * u k z)).
  - destruct (H k q (or_introl eq_refl)). now apply supported_scale.
  - apply IH. intros. apply H. now right.
Qed.

Section Node.

Variable env : point -> nat -> nat -> R.
Variables (sizes : list nat) (shapes : list shape).
Hypothesis earlier : forall a n, nth_error sizes a = Some n -> forall i, (i < n)%nat ->
  shaped (nth a shapes Other) (fun z => env z a i).

Lemma node_shaped nd size : node_size sizes nd = Some size -> forall i, (i < size)%nat ->
  shaped (node_shape shapes nd) (fun z => value nd (env z) i).
Proof.
  assert (Place : forall i c n, (0 < c)%nat -> (i < n / c)%nat -> forall j, (j < c)%nat ->
            (i * c + j < n)%nat).
  { intros i c n P I j J. pose proof (Nat.mul_div_le n c ltac:(lia)). nia. }
  assert (If_flat : forall a u, (is_flat (nth a shapes Other) = true -> supported u) ->
            shaped (if is_flat (nth a shapes Other) then Cup else Other) u).
  { intros a u H. destruct (is_flat _); simpl; auto. }
  destruct nd as [a c w rows offset|args|a b|a bs ps|a c|a c|a c|a]; simpl; intros H i I.
  - destruct (nth_error sizes a) as [n|] eqn:E; [|discriminate].
    destruct (_ && _) eqn:G; [|discriminate]. injection H as <-.
    rewrite !andb_true_iff in G. destruct G as (((((G1 & G2) & G3) & _) & G5) & _).
    apply Nat.ltb_lt in G1, G2. apply Nat.eqb_eq in G3. rewrite forallb_forall in G5.
    set (r := nth (i / c) rows []).
    assert (In_r : forall k q, In (k, q) r -> (k < w)%nat /\
              (forallb (forallb (fun e => Qle_bool 0 (snd e))) rows = true -> 0 <= Q2R q)).
    { intros k q Iq. unfold r in Iq.
      destruct (Nat.lt_ge_cases (i / c) (length rows)) as [L|L];
        [|rewrite nth_overflow in Iq by exact L; destruct Iq].
      pose proof (nth_In rows [] L) as Ir. split.
      - specialize (G5 _ Ir). rewrite forallb_forall in G5. now apply Nat.ltb_lt, (G5 (k, q)).
      - intros F. rewrite forallb_forall in F. specialize (F _ Ir). rewrite forallb_forall in F.
        specialize (F _ Iq). apply R_le in F. now rewrite R_0 in F. }
    assert (Old : forall k q, In (k, q) r ->
              shaped (nth a shapes Other) (fun z => env z a (k * c + i mod c)%nat)).
    { intros k q Iq. apply (earlier a n E). destruct (In_r k q Iq) as [K _].
      pose proof (Nat.mod_upper_bound i c ltac:(lia)). nia. }
    destruct (nth a shapes Other) eqn:Sh; simpl in Old |- *; [| |exact Logic.I].
    + apply (flat_add (fun z => row_sum r (fun k => env z a (k * c + i mod c)%nat)));
        [|apply flat_const].
      apply (flat_row r (fun k z => env z a (k * c + i mod c)%nat)). exact Old.
    + destruct (forallb _ rows) eqn:F; simpl; [|exact Logic.I].
      apply (supported_add (fun z => row_sum r (fun k => env z a (k * c + i mod c)%nat)));
        [|apply supported_flat, flat_const].
      apply (supported_row r (fun k z => env z a (k * c + i mod c)%nat)).
      intros k q Iq. split; [now apply (In_r k q Iq) | now apply (Old k q)].
  - destruct args as [|a0 args]; [discriminate|]. set (l := a0 :: args) in *.
    destruct (nth_error sizes a0) as [n|] eqn:E; [|discriminate].
    destruct (forallb _ l) eqn:G; [|discriminate]. injection H as <-. rewrite forallb_forall in G.
    assert (Old : forall a, In a l -> shaped (nth a shapes Other) (fun z => env z a i)).
    { intros a Ia. specialize (G a Ia). destruct (nth_error sizes a) as [m|] eqn:Em; [|discriminate].
      apply Nat.eqb_eq in G. subst m. now apply (earlier a n Em). }
    clearbody l. clear - Old.
    destruct (forallb (fun a => is_flat (nth a shapes Other)) l) eqn:F;
      [|destruct (forallb (fun a => is_cup (nth a shapes Other)) l) eqn:F'; [|exact Logic.I]]; simpl.
    + induction l as [|a l IH]; simpl in *; [apply flat_const|]. apply andb_true_iff in F.
      apply (flat_add (fun z => env z a i)); [eapply shaped_flat; [apply F | auto]|].
      apply IH; [auto | apply F].
    + clear F. induction l as [|a l IH]; simpl in *; [apply supported_flat, flat_const|].
      apply andb_true_iff in F'.
      apply (supported_add (fun z => env z a i)); [eapply shaped_cup; [apply F' | auto]|].
      apply IH; [auto | apply F'].
  - destruct (nth_error sizes a) as [n|] eqn:E; [|discriminate].
    destruct (nth_error sizes b); [|discriminate]. destruct (_ =? _)%nat in H; [|discriminate].
    injection H as <-. destruct (Nat.eqb_spec a b) as [<-|]; [|exact Logic.I].
    apply If_flat. intros F. pose proof (shaped_flat _ _ F (earlier a n E i I)) as U.
    apply (supported_one _ (fun t => t * t) (fun t => 2 * t) U). intros t s.
    pose proof (Rle_0_sqr (s - t)) as Sq. unfold Rsqr in Sq. lra.
  - destruct (nth_error sizes a) as [n|] eqn:E; [|discriminate].
    destruct (_ && _) in H; [|discriminate]. injection H as <-.
    destruct (ascending bs && cup_pieces bs ps) eqn:C; [|exact Logic.I].
    apply andb_true_iff in C. apply If_flat. intros F.
    pose proof (shaped_flat _ _ F (earlier a n E i I)) as U.
    apply (supported_one _ (piecewise bs ps) (slopes bs ps) U). now apply pieces_support.
  - destruct (nth_error sizes a) as [n|] eqn:E; [|discriminate].
    destruct (_ && _) eqn:G in H; [|discriminate]. injection H as <-.
    apply andb_true_iff in G. destruct G as [G _]. apply Nat.ltb_lt in G.
    destruct (is_cup (nth a shapes Other)) eqn:C; [|exact Logic.I]. simpl.
    apply (supported_max (c - 1) (fun j z => env z a (i * c + j)%nat)). intros j J.
    eapply shaped_cup; [exact C | apply (earlier a n E), Place; lia].
  - destruct (nth_error sizes a) as [n|] eqn:E; [|discriminate].
    destruct (_ && _) eqn:G in H; [|discriminate]. injection H as <-.
    apply andb_true_iff in G. destruct G as [G _]. apply Nat.ltb_lt in G.
    apply If_flat. intros F. apply (supported_norm c (fun j z => env z a (i * c + j)%nat)).
    intros j J. eapply shaped_flat; [exact F | apply (earlier a n E), Place; lia].
  - destruct (nth_error sizes a) as [n|] eqn:E; [|discriminate].
    destruct (_ && _) eqn:G in H; [|discriminate]. injection H as <-.
    apply andb_true_iff in G. destruct G as [G _]. apply Nat.ltb_lt in G.
    apply If_flat. intros F. apply (supported_logsumexp c (fun j z => env z a (i * c + j)%nat) G).
    intros j J. eapply shaped_flat; [exact F | apply (earlier a n E), Place; lia].
  - exact Logic.I.
Qed.

End Node.

Lemma nodes_shaped l : forall sizes shapes sizes' env, length shapes = length sizes ->
  (forall a n, nth_error sizes a = Some n -> forall i, (i < n)%nat ->
     shaped (nth a shapes Other) (fun z => env z a i)) ->
  node_sizes sizes l = Some sizes' ->
  length sizes' = (length sizes + length l)%nat /\
  forall a n, nth_error sizes' a = Some n -> forall i, (i < n)%nat ->
    shaped (nth a (node_shapes l shapes) Other) (fun z => run (length sizes) l (env z) a i).
Proof.
  induction l as [|nd l IH]; intros sizes shapes sizes' env L E H; simpl in *.
  - injection H as <-. split; [lia | exact E].
  - destruct (node_size sizes nd) as [size|] eqn:S; [|discriminate].
    edestruct (IH (sizes ++ [size]) (shapes ++ [node_shape shapes nd]) sizes'
      (fun z a => if (a =? length sizes)%nat then value nd (env z) else env z a)) as [X Y];
      [rewrite !app_length; simpl; lia | | exact H | ].
    + intros a n N i I. destruct (Nat.eqb_spec a (length sizes)) as [->|Ne].
      * rewrite nth_error_app2, Nat.sub_diag in N by lia. simpl in N. injection N as <-.
        rewrite <- L, app_nth2, Nat.sub_diag by lia. simpl.
        exact (node_shaped env sizes shapes E _ _ S i I).
      * assert (a < length sizes)%nat.
        { assert (a < length (sizes ++ [size]))%nat by (apply nth_error_Some; congruence).
          rewrite app_length in H0. simpl in H0. lia. }
        rewrite nth_error_app1 in N by assumption. rewrite app_nth1 by lia. now apply (E a n).
    + rewrite app_length in X, Y. simpl in X, Y. split; [lia|].
      intros a n N i I. specialize (Y a n N i I). now rewrite Nat.add_1_r in Y.
Qed.

End Space.

Theorem convex_sound p : convex p = true -> supported (dimension p) (denote p).
Proof.
  unfold convex, well_formed. rewrite andb_true_iff. intros [W C].
  destruct (node_sizes [dimension p] (nodes p)) as [sizes|] eqn:S; [|discriminate].
  apply andb_true_iff in W. destruct W as [W _]. apply Nat.eqb_eq in W.
  destruct (nodes_shaped (dimension p) (nodes p) [dimension p] [Flat] sizes (fun z _ => z) eq_refl)
    with (2 := S) as [L H].
  { intros [|a] n N i I; [|destruct a; discriminate]. injection N as <-. simpl.
    now apply flat_coordinate. }
  eapply shaped_cup; [exact C|]. apply (H (length (nodes p)) 1%nat); [|lia].
  destruct (nth_error sizes (length (nodes p))) as [n|] eqn:E.
  - f_equal. rewrite <- W. apply nth_error_nth with (d := 0%nat) in E. rewrite <- E.
    simpl in L. clear - L. revert L. generalize (length (nodes p)).
    induction sizes as [|x l IH]; intros k L; [discriminate|]. destruct k; simpl in *.
    + destruct l; [reflexivity | discriminate].
    + destruct l as [|x' l]; [discriminate|]. apply IH. lia.
  - apply nth_error_None in E. simpl in L. lia.
Qed.

(** A near stationary point of a convex function is a minimum: no f(z) is below f(y) - eps |z - y|. *)
Theorem minimum_sound : forall f pivot l, proof f = Near pivot l ->
  check f = true -> convex (function f) = true ->
  let d := dimension (function f) in
  exists y, dist d y (vec (x f)) <= Q2R (delta f) /\ minimal d (denote (function f)) y (Q2R (eps f)).
Proof.
  intros f pivot l P H C. destruct (check_sound f H) as [_ K]. unfold claim in K. rewrite P in K.
  now apply stationary_minimal; [apply convex_sound|].
Qed.
