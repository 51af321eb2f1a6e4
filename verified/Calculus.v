(** Gradients: rules for sums, products and compositions, and limits along a ray. *)

From Coq Require Import Reals Lra Lia Arith.
From Verified Require Import Definitions.
Open Scope R_scope.

(** ** Finite sums *)

Lemma sum_ext n a b : (forall i, (i < n)%nat -> a i = b i) -> sum n a = sum n b.
Proof. induction n; simpl; intros H; [reflexivity|]. rewrite IHn, (H n); auto. Qed.

Lemma sum_plus n a b : sum n (fun i => a i + b i) = sum n a + sum n b.
Proof. induction n; simpl; [lra | rewrite IHn; lra]. Qed.

Lemma sum_scal n c a : sum n (fun i => c * a i) = c * sum n a.
Proof. induction n; simpl; [lra | rewrite IHn; lra]. Qed.

Lemma sum_zero n : sum n (fun _ => 0) = 0.
Proof. induction n; simpl; lra. Qed.

Lemma sum_le n a b : (forall i, (i < n)%nat -> a i <= b i) -> sum n a <= sum n b.
Proof.
  induction n; simpl; intros H; [lra|].
  pose proof (H n (Nat.lt_succ_diag_r n)).
  enough (sum n a <= sum n b) by lra. auto.
Qed.

Lemma sum_nonneg n a : (forall i, (i < n)%nat -> 0 <= a i) -> 0 <= sum n a.
Proof. intros H. rewrite <- (sum_zero n). now apply sum_le. Qed.

Lemma sum_term n a i : (forall i, 0 <= a i) -> (i < n)%nat -> a i <= sum n a.
Proof.
  intros P. induction n; simpl; intros L; [lia|].
  pose proof (sum_nonneg n a (fun i _ => P i)). pose proof (P n).
  destruct (Nat.eq_dec i n) as [->|]; [lra|].
  assert (a i <= sum n a) by (apply IHn; lia). lra.
Qed.

Lemma sum_swap n m (a : nat -> nat -> R) :
  sum n (fun i => sum m (a i)) = sum m (fun j => sum n (fun i => a i j)).
Proof.
  induction n; simpl; [now rewrite sum_zero|]. now rewrite IHn, sum_plus.
Qed.

Lemma Rabs_sum n a : Rabs (sum n a) <= sum n (fun i => Rabs (a i)).
Proof.
  induction n; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang | lra].
Qed.

Lemma sum_squares_le n a : (forall i, 0 <= a i) -> sum n (fun i => a i * a i) <= sum n a * sum n a.
Proof.
  intros P. induction n; simpl; [lra|].
  pose proof (sum_nonneg n a (fun i _ => P i)). pose proof (P n).
  assert (0 <= sum n a * a n) by (apply Rmult_le_pos; lra). nra.
Qed.

(** Finitely many choices. *)
Lemma choose {X} n (P : nat -> X -> Prop) (default : X) :
  (forall j, (j < n)%nat -> exists x, P j x) -> exists f, forall j, (j < n)%nat -> P j (f j).
Proof.
  induction n; intros H; [exists (fun _ => default); intros; lia|].
  destruct (IHn ltac:(auto)) as [f F]. destruct (H n ltac:(lia)) as [x Hx].
  exists (fun j => if (j =? n)%nat then x else f j). intros j L.
  destruct (Nat.eqb_spec j n) as [->|]; [exact Hx | apply F; lia].
Qed.

Definition dot_n (n : nat) (a : nat -> R) : R := sum n (fun j => a j * a j).

Section Space.

Variable d : nat.
Notation dot := (dot d).
Notation norm := (norm d).
Notation dist := (dist d).
Notation gradient := (gradient d).

(** ** Norms *)

Lemma dot_nonneg u : 0 <= dot u u.
Proof. apply sum_nonneg. intros. nra. Qed.

Lemma norm_nonneg u : 0 <= norm u.
Proof. apply sqrt_pos. Qed.

Lemma dist_nonneg x y : 0 <= dist x y.
Proof. apply norm_nonneg. Qed.

Lemma dist_self x : dist x x = 0.
Proof.
  unfold Definitions.dist, Definitions.norm, Definitions.dot, minus.
  erewrite sum_ext; [|intros; rewrite Rminus_diag_eq, Rmult_0_l by reflexivity; reflexivity].
  rewrite sum_zero. apply sqrt_0.
Qed.

Lemma coordinate_le u i : (i < d)%nat -> Rabs (u i) <= norm u.
Proof.
  intros L. unfold Definitions.norm. rewrite <- sqrt_Rsqr_abs. apply sqrt_le_1_alt.
  unfold Rsqr. apply (sum_term d (fun i => u i * u i)); [intros; nra | exact L].
Qed.

Lemma norm_le_sum u : norm u <= sum d (fun i => Rabs (u i)).
Proof.
  assert (P : 0 <= sum d (fun i => Rabs (u i))) by (apply sum_nonneg; intros; apply Rabs_pos).
  rewrite <- (sqrt_Rsqr (sum _ _)) by exact P. apply sqrt_le_1_alt. unfold Rsqr.
  eapply Rle_trans; [|apply sum_squares_le; intros; apply Rabs_pos].
  apply sum_le. intros i _. rewrite <- Rabs_mult, Rabs_pos_eq; [lra | nra].
Qed.

Lemma dot_bound g h : Rabs (dot g h) <= sum d (fun i => Rabs (g i)) * norm h.
Proof.
  eapply Rle_trans; [apply Rabs_sum|]. rewrite Rmult_comm, <- sum_scal.
  apply sum_le. intros i L. rewrite Rabs_mult, Rmult_comm.
  apply Rmult_le_compat_r; [apply Rabs_pos | now apply coordinate_le].
Qed.

Lemma dot_plus g h u : dot (fun i => g i + h i) u = dot g u + dot h u.
Proof. unfold Definitions.dot. rewrite <- sum_plus. apply sum_ext. intros. ring. Qed.

Lemma dot_scal c g u : dot (fun i => c * g i) u = c * dot g u.
Proof. unfold Definitions.dot. rewrite <- sum_scal. apply sum_ext. intros. ring. Qed.

Lemma norm_of_square u b : 0 <= b -> dot u u <= b * b -> norm u <= b.
Proof.
  intros P H. rewrite <- (sqrt_square b P). now apply sqrt_le_1_alt.
Qed.

(** ** Continuity and differentiability at a point *)

Definition cont (f : point -> R) (x : point) : Prop :=
  forall e, 0 < e -> exists r, 0 < r /\ forall z, dist z x < r -> Rabs (f z - f x) < e.

Lemma both x (P Q : point -> Prop) :
  (exists r, 0 < r /\ forall z, dist z x < r -> P z) ->
  (exists r, 0 < r /\ forall z, dist z x < r -> Q z) ->
  exists r, 0 < r /\ forall z, dist z x < r -> P z /\ Q z.
Proof.
  intros (r & Hr & HP) (s & Hs & HQ). exists (Rmin r s). split; [now apply Rmin_pos|].
  intros z Hz. split; [apply HP | apply HQ]; eapply Rlt_le_trans; eauto using Rmin_l, Rmin_r.
Qed.

Lemma gradient_lipschitz f x g : gradient f x g ->
  exists b, 0 < b /\ exists r, 0 < r /\ forall z, dist z x < r -> Rabs (f z - f x) <= b * dist z x.
Proof.
  intros H. exists (1 + sum d (fun i => Rabs (g i))). split.
  { enough (0 <= sum d (fun i => Rabs (g i))) by lra. apply sum_nonneg. intros. apply Rabs_pos. }
  destruct (H 1 ltac:(lra)) as (r & Hr & B). exists r. split; [exact Hr|].
  intros z Hz. specialize (B z Hz).
  pose proof (dot_bound g (minus z x)). fold (dist z x) in *.
  replace (f z - f x) with ((f z - f x - dot g (minus z x)) + dot g (minus z x)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. unfold Definitions.dist in *. lra.
Qed.

Lemma gradient_cont f x g : gradient f x g -> cont f x.
Proof.
  intros H e He. destruct (gradient_lipschitz _ _ _ H) as (b & Hb & r & Hr & B).
  exists (Rmin r (e / b)). split; [apply Rmin_pos; auto; now apply Rdiv_lt_0_compat|].
  intros z Hz. eapply Rle_lt_trans; [apply B; eapply Rlt_le_trans; eauto using Rmin_l|].
  apply Rlt_le_trans with (b * (e / b)); [|right; field; lra].
  apply Rmult_lt_compat_l; auto. eapply Rlt_le_trans; eauto using Rmin_r.
Qed.

Lemma gradient_const c x : gradient (fun _ => c) x (fun _ => 0).
Proof.
  intros e He. exists 1. split; [lra|]. intros z _.
  unfold Definitions.dot. erewrite sum_ext; [|intros; apply Rmult_0_l].
  rewrite sum_zero, Rminus_0_r, Rminus_diag_eq, Rabs_R0 by reflexivity.
  apply Rmult_le_pos; [lra | apply dist_nonneg].
Qed.

Definition unit_vector (i : nat) : point := fun j => if (j =? i)%nat then 1 else 0.

Lemma sum_unit n i a : (i < n)%nat -> sum n (fun j => unit_vector i j * a j) = a i.
Proof.
  induction n; simpl; intros L; [lia|]. unfold unit_vector at 2.
  destruct (Nat.eqb_spec n i) as [->|N].
  - rewrite (sum_ext i _ (fun _ => 0)), sum_zero; [lra|].
    intros j Hj. unfold unit_vector. destruct (Nat.eqb_spec j i); [lia | lra].
  - rewrite IHn by lia. lra.
Qed.

Lemma gradient_coordinate i x : (i < d)%nat -> gradient (fun z => z i) x (unit_vector i).
Proof.
  intros L e He. exists 1. split; [lra|]. intros z _.
  unfold Definitions.dot. rewrite sum_unit by exact L. unfold minus.
  rewrite Rminus_diag_eq, Rabs_R0 by reflexivity.
  apply Rmult_le_pos; [lra | apply dist_nonneg].
Qed.

Lemma gradient_add f g x a b : gradient f x a -> gradient g x b ->
  gradient (fun z => f z + g z) x (fun i => a i + b i).
Proof.
  intros Hf Hg e He.
  destruct (both _ _ _ (Hf (e / 2) ltac:(lra)) (Hg (e / 2) ltac:(lra))) as (r & Hr & H).
  exists r. split; [exact Hr|]. intros z Hz. destruct (H z Hz). rewrite dot_plus.
  replace (f z + g z - (f x + g x) - (dot a (minus z x) + dot b (minus z x)))
    with ((f z - f x - dot a (minus z x)) + (g z - g x - dot b (minus z x))) by ring.
  eapply Rle_trans; [apply Rabs_triang | lra].
Qed.

Lemma gradient_mul f g x a b : gradient f x a -> gradient g x b ->
  gradient (fun z => f z * g z) x (fun i => f x * b i + g x * a i).
Proof.
  intros Hf Hg e He.
  destruct (gradient_lipschitz _ _ _ Hf) as (l & Hl & Lip).
  set (m := Rabs (f x) + Rabs (g x) + l).
  assert (Hm : 0 < m)
    by (unfold m; pose proof (Rabs_pos (f x)); pose proof (Rabs_pos (g x)); lra).
  assert (Hk : 0 < e / m) by now apply Rdiv_lt_0_compat.
  destruct (both _ _ _ Lip (gradient_cont _ _ _ Hg (e / m) Hk)) as (r & Hr & A).
  destruct (both _ _ _ (Hf (e / m) Hk) (Hg (e / m) Hk)) as (s & Hs & B).
  destruct (both x (fun z => _) (fun z => _) (ex_intro _ r (conj Hr A)) (ex_intro _ s (conj Hs B)))
    as (t & Ht & C).
  exists t. split; [exact Ht|]. intros z Hz. destruct (C z Hz) as [[C1 C2] [C3 C4]].
  rewrite dot_plus, !dot_scal.
  replace (f z * g z - f x * g x - (f x * dot b (minus z x) + g x * dot a (minus z x)))
    with (f x * (g z - g x - dot b (minus z x)) + (g x * (f z - f x - dot a (minus z x))
          + (f z - f x) * (g z - g x))) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  eapply Rle_trans; [apply Rplus_le_compat_l, Rabs_triang|].
  rewrite !Rabs_mult.
  pose proof (Rabs_pos (f x)). pose proof (Rabs_pos (g x)). pose proof (dist_nonneg z x).
  set (k := e / m) in *. set (D := dist z x) in *.
  apply Rle_trans with (Rabs (f x) * (k * D) + (Rabs (g x) * (k * D) + l * D * k)).
  - apply Rplus_le_compat; [now apply Rmult_le_compat_l|].
    apply Rplus_le_compat; [now apply Rmult_le_compat_l|].
    apply Rmult_le_compat; try apply Rabs_pos; lra.
  - right. replace (e * D) with (k * m * D) by (unfold k; field; lra). unfold m. ring.
Qed.

Lemma gradient_ext f x a b : (forall i, (i < d)%nat -> a i = b i) -> gradient f x a -> gradient f x b.
Proof.
  intros E H e He. destruct (H e He) as (r & Hr & B). exists r. split; [exact Hr|].
  intros z Hz. replace (dot b (minus z x)) with (dot a (minus z x)); [auto|].
  apply sum_ext. intros i I. now rewrite E.
Qed.

Lemma gradient_sum n (f : nat -> point -> R) x a : (forall j, (j < n)%nat -> gradient (f j) x (a j)) ->
  gradient (fun z => sum n (fun j => f j z)) x (fun i => sum n (fun j => a j i)).
Proof.
  induction n; intros H; simpl; [apply gradient_const|].
  apply gradient_add; [apply IHn; auto | apply H; lia].
Qed.

Lemma gradient_local f g x a :
  (exists r, 0 < r /\ forall z, dist z x < r -> f z = g z) -> gradient g x a -> gradient f x a.
Proof.
  intros E H e He. destruct (both _ _ _ E (H e He)) as (r & Hr & A).
  exists r. split; [exact Hr|]. intros z Hz. destruct (A z Hz) as [-> B].
  destruct (A x) as [-> _]; [rewrite dist_self; exact Hr | exact B].
Qed.

Lemma gradient_comp h l f x a : derivable_pt_lim h (f x) l -> gradient f x a ->
  gradient (fun z => h (f z)) x (fun i => l * a i).
Proof.
  intros D H e He.
  destruct (gradient_lipschitz _ _ _ H) as (b & Hb & Lip).
  set (k := e / (2 * b)). assert (Hk : 0 < k) by (apply Rdiv_lt_0_compat; lra).
  destruct (D k Hk) as ((r & Hr) & Dr). simpl in Dr.
  set (m := e / (2 * (Rabs l + 1))).
  assert (Hm : 0 < m) by (apply Rdiv_lt_0_compat; [|pose proof (Rabs_pos l)]; lra).
  destruct (both _ _ _ (gradient_cont _ _ _ H r Hr) (H m Hm)) as (s & Hs & A).
  destruct (both x (fun z => _) (fun z => _) Lip (ex_intro _ s (conj Hs A))) as (t & Ht & B).
  exists t. split; [exact Ht|]. intros z Hz. destruct (B z Hz) as (L & C & G).
  rewrite dot_scal. set (D0 := dist z x) in *. set (u := f z - f x) in *.
  replace (h (f z) - h (f x) - l * dot a (minus z x))
    with ((h (f x + u) - h (f x) - l * u) + l * (u - dot a (minus z x)))
    by (unfold u; replace (f x + (f z - f x)) with (f z) by ring; ring).
  eapply Rle_trans; [apply Rabs_triang|].
  assert (P : 0 <= D0) by apply dist_nonneg.
  assert (X : Rabs (h (f x + u) - h (f x) - l * u) <= k * Rabs u).
  { destruct (Req_dec u 0) as [->|N].
    - rewrite Rplus_0_r, Rabs_R0. replace (h (f x) - h (f x) - l * 0) with 0 by ring.
      rewrite Rabs_R0. lra.
    - specialize (Dr u N C).
      replace (h (f x + u) - h (f x) - l * u)
        with (((h (f x + u) - h (f x)) / u - l) * u) by (field; exact N).
      rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos | lra]. }
  rewrite Rabs_mult.
  assert (Y : k * Rabs u <= e / 2 * D0).
  { apply Rle_trans with (k * (b * D0)); [now apply Rmult_le_compat_l; [lra|]|].
    right. unfold k. field. lra. }
  assert (Z : Rabs l * Rabs (u - dot a (minus z x)) <= e / 2 * D0).
  { apply Rle_trans with ((Rabs l + 1) * (m * D0)).
    - apply Rmult_le_compat; try apply Rabs_pos; [lra | exact G].
    - right. unfold m. field. pose proof (Rabs_pos l). lra. }
  lra.
Qed.

(** ** Along a ray y + t v, for small t > 0 *)

Definition soon (P : R -> Prop) : Prop := exists T, 0 < T /\ forall t, 0 < t < T -> P t.

Lemma soon_always (P : R -> Prop) : (forall t, 0 < t -> P t) -> soon P.
Proof. intros H. exists 1. split; [lra|]. intros t Ht. apply H. lra. Qed.

Lemma soon_and P Q : soon P -> soon Q -> soon (fun t => P t /\ Q t).
Proof.
  intros (T & HT & A) (U & HU & B). exists (Rmin T U). split; [now apply Rmin_pos|].
  intros t [L M]. split; [apply A | apply B]; split; auto; eapply Rlt_le_trans;
    eauto using Rmin_l, Rmin_r.
Qed.

Lemma soon_impl (P Q : R -> Prop) : soon P -> (forall t, 0 < t -> P t -> Q t) -> soon Q.
Proof. intros (T & HT & A) H. exists T. split; [exact HT|]. intros t Ht. apply H; [lra | auto]. Qed.

Lemma soon_true (P : Prop) : soon (fun _ => P) -> P.
Proof. intros (T & HT & A). apply (A (T / 2)). lra. Qed.

Lemma soon_forall n (P : nat -> R -> Prop) :
  (forall j, (j < n)%nat -> soon (P j)) -> soon (fun t => forall j, (j < n)%nat -> P j t).
Proof.
  induction n; intros H; [apply soon_always; intros; lia|].
  eapply soon_impl; [exact (soon_and _ _ (IHn ltac:(auto)) (H n ltac:(lia)))|].
  intros t _ [A B] j L. destruct (Nat.eq_dec j n) as [->|]; [exact B | apply A; lia].
Qed.

Definition tends (a : R -> R) (l : R) : Prop :=
  forall e, 0 < e -> soon (fun t => Rabs (a t - l) < e).

Lemma tends_eq a b l : soon (fun t => a t = b t) -> tends b l -> tends a l.
Proof.
  intros E H e He. eapply soon_impl; [exact (soon_and _ _ E (H e He))|]. now intros t _ [-> ?].
Qed.

Lemma tends_const c : tends (fun _ => c) c.
Proof. intros e He. apply soon_always. intros. now rewrite Rminus_diag_eq, Rabs_R0. Qed.

Lemma tends_id : tends (fun t => t) 0.
Proof.
  intros e He. exists e. split; [exact He|]. intros t Ht. rewrite Rminus_0_r, Rabs_pos_eq; lra.
Qed.

Lemma tends_comp h a l : continuity_pt h l -> tends a l -> tends (fun t => h (a t)) (h l).
Proof.
  intros C H e He. destruct (C e He) as (r & Hr & B).
  eapply soon_impl; [exact (H r Hr)|]. intros t _ L.
  destruct (Req_dec (a t) l) as [->|N]; [now rewrite Rminus_diag_eq, Rabs_R0|].
  apply (B (a t)). split; [split; [exact I | auto] | exact L].
Qed.

Lemma tends_add a b l m : tends a l -> tends b m -> tends (fun t => a t + b t) (l + m).
Proof.
  intros A B e He.
  eapply soon_impl; [exact (soon_and _ _ (A (e / 2) ltac:(lra)) (B (e / 2) ltac:(lra)))|].
  intros t _ [H K]. replace (a t + b t - (l + m)) with ((a t - l) + (b t - m)) by ring.
  eapply Rle_lt_trans; [apply Rabs_triang | lra].
Qed.

Lemma tends_mul a b l m : tends a l -> tends b m -> tends (fun t => a t * b t) (l * m).
Proof.
  intros A B e He.
  pose proof (Rabs_pos l) as Pl. pose proof (Rabs_pos m) as Pm.
  set (s := 1 + Rabs l + Rabs m). set (k := Rmin 1 (e / s)).
  assert (Hk : 0 < k).
  { apply Rmin_pos; [lra|]. apply Rdiv_lt_0_compat; unfold s; lra. }
  assert (k <= 1) by apply Rmin_l.
  assert (k * s <= e).
  { apply Rle_trans with (e / s * s); [|unfold s; field_simplify; lra].
    apply Rmult_le_compat_r; [unfold s; lra | apply Rmin_r]. }
  eapply soon_impl; [exact (soon_and _ _ (A k Hk) (B k Hk))|]. intros t _ [H1 H2].
  replace (a t * b t - l * m)
    with ((a t - l) * (b t - m) + (l * (b t - m) + m * (a t - l))) by ring.
  eapply Rle_lt_trans; [apply Rabs_triang|].
  eapply Rle_lt_trans; [apply Rplus_le_compat_l, Rabs_triang|].
  rewrite !Rabs_mult.
  pose proof (Rabs_pos (a t - l)). pose proof (Rabs_pos (b t - m)).
  assert (Rabs (a t - l) * Rabs (b t - m) < k * 1) by (apply Rmult_le_0_lt_compat; lra).
  assert (Rabs l * Rabs (b t - m) <= Rabs l * k) by (apply Rmult_le_compat_l; lra).
  assert (Rabs m * Rabs (a t - l) <= Rabs m * k) by (apply Rmult_le_compat_l; lra).
  unfold s in *. lra.
Qed.

Lemma tends_sum n (a : nat -> R -> R) l : (forall j, (j < n)%nat -> tends (a j) (l j)) ->
  tends (fun t => sum n (fun j => a j t)) (sum n l).
Proof.
  induction n; intros H; simpl; [apply tends_const|]. apply tends_add; auto.
Qed.

Lemma tends_unique a l m : tends a l -> tends a m -> l = m.
Proof.
  intros A B. apply cond_eq. intros e He. apply soon_true.
  eapply soon_impl; [exact (soon_and _ _ (A (e / 2) ltac:(lra)) (B (e / 2) ltac:(lra)))|].
  intros t _ [H K]. rewrite Rabs_minus_sym in H.
  replace (l - m) with ((l - a t) + (a t - m)) by ring.
  eapply Rle_lt_trans; [apply Rabs_triang | lra].
Qed.

Lemma tends_lt a b l m : tends a l -> tends b m -> l < m -> soon (fun t => a t < b t).
Proof.
  intros A B L.
  eapply soon_impl; [exact (soon_and _ _ (A ((m - l) / 2) ltac:(lra)) (B ((m - l) / 2) ltac:(lra)))|].
  intros t _ [H K]. apply Rabs_def2 in H, K. lra.
Qed.

Section Ray.

Variables y v : point.

Definition ray (t : R) : point := fun i => y i + t * v i.

(** on a neighbourhood of y + t v, for all small t > 0 *)
Definition beside (P : point -> Prop) : Prop :=
  soon (fun t => exists r, 0 < r /\ forall z, dist z (ray t) < r -> P z).

Lemma beside_always (P : point -> Prop) : (forall z, P z) -> beside P.
Proof. intros H. apply soon_always. intros. exists 1. split; [lra | auto]. Qed.

Lemma beside_and P Q : beside P -> beside Q -> beside (fun z => P z /\ Q z).
Proof.
  intros A B. eapply soon_impl; [exact (soon_and _ _ A B)|]. intros t _ [H K]. now apply both.
Qed.

Lemma beside_impl (P Q : point -> Prop) : beside P -> (forall z, P z -> Q z) -> beside Q.
Proof.
  intros A H. eapply soon_impl; [exact A|]. intros t _ (r & Hr & B). exists r. split; auto.
Qed.

Lemma beside_forall n (P : nat -> point -> Prop) :
  (forall j, (j < n)%nat -> beside (P j)) -> beside (fun z => forall j, (j < n)%nat -> P j z).
Proof.
  induction n; intros H; [apply beside_always; intros; lia|].
  eapply beside_impl; [exact (beside_and _ _ (IHn ltac:(auto)) (H n ltac:(lia)))|].
  intros z [A B] j L. destruct (Nat.eq_dec j n) as [->|]; [exact B | apply A; lia].
Qed.

Lemma beside_soon P : beside P -> soon (fun t => P (ray t)).
Proof.
  intros A. eapply soon_impl; [exact A|]. intros t _ (r & Hr & B). apply B. now rewrite dist_self.
Qed.

(** Beside the ray u has gradients; on it, u tends to c and its gradients to g. *)
Definition smooth (u : point -> R) (c : R) (g : nat -> R) : Prop :=
  exists G : R -> point,
    soon (fun t => gradient u (ray t) (G t))
    /\ tends (fun t => u (ray t)) c
    /\ forall i, (i < d)%nat -> tends (fun t => G t i) (g i).

Lemma smooth_local u w c g : beside (fun z => u z = w z) -> smooth w c g -> smooth u c g.
Proof.
  intros E (G & A & B & C). exists G. split; [|split; [|exact C]].
  - eapply soon_impl; [exact (soon_and _ _ E A)|]. intros t _ [H K].
    eapply gradient_local; eauto.
  - eapply tends_eq; [|exact B]. now apply beside_soon in E.
Qed.

Lemma smooth_ext u c g g' : (forall i, (i < d)%nat -> g i = g' i) -> smooth u c g -> smooth u c g'.
Proof.
  intros E (G & A & B & C). exists G. split; [exact A|]. split; [exact B|].
  intros i I. rewrite <- E by exact I. auto.
Qed.

Lemma smooth_const c : smooth (fun _ => c) c (fun _ => 0).
Proof.
  exists (fun _ _ => 0). split; [apply soon_always; intros; apply gradient_const|].
  split; intros; apply tends_const.
Qed.

Lemma smooth_coordinate i : (i < d)%nat -> smooth (fun z => z i) (y i) (unit_vector i).
Proof.
  intros L. exists (fun _ => unit_vector i).
  split; [apply soon_always; intros; now apply gradient_coordinate|].
  split; [|intros; apply tends_const].
  assert (H : tends (fun t => y i + t * v i) (y i + 0 * v i)).
  { apply tends_add; [apply tends_const|]. apply tends_mul; [apply tends_id | apply tends_const]. }
  now rewrite Rmult_0_l, Rplus_0_r in H.
Qed.

Lemma smooth_add u w c b g h : smooth u c g -> smooth w b h ->
  smooth (fun z => u z + w z) (c + b) (fun i => g i + h i).
Proof.
  intros (G & A & B & C) (H & A' & B' & C'). exists (fun t i => G t i + H t i).
  split; [|split; [now apply tends_add | intros; apply tends_add; auto]].
  eapply soon_impl; [exact (soon_and _ _ A A')|]. intros t _ [P Q]. now apply gradient_add.
Qed.

Lemma smooth_mul u w c b g h : smooth u c g -> smooth w b h ->
  smooth (fun z => u z * w z) (c * b) (fun i => c * h i + b * g i).
Proof.
  intros (G & A & B & C) (H & A' & B' & C').
  exists (fun t i => u (ray t) * H t i + w (ray t) * G t i).
  split; [|split; [now apply tends_mul | intros; apply tends_add; apply tends_mul; auto]].
  eapply soon_impl; [exact (soon_and _ _ A A')|]. intros t _ [P Q].
  exact (gradient_mul u w (ray t) (G t) (H t) P Q).
Qed.

Lemma smooth_scale k u c g : smooth u c g -> smooth (fun z => k * u z) (k * c) (fun i => k * g i).
Proof.
  intros H. eapply smooth_ext; [|exact (smooth_mul _ _ _ _ _ _ (smooth_const k) H)].
  intros. simpl. ring.
Qed.

(** h and its derivative h' are continuous on the open set D. *)
Lemma smooth_comp (D : R -> Prop) h h' u c g :
  (forall x, D x -> derivable_pt_lim h x (h' x)) -> continuity_pt h' c -> D c ->
  soon (fun t => D (u (ray t))) ->
  smooth u c g -> smooth (fun z => h (u z)) (h c) (fun i => h' c * g i).
Proof.
  intros Dh Ch Hc S (G & A & B & C). exists (fun t i => h' (u (ray t)) * G t i).
  split; [|split].
  - eapply soon_impl; [exact (soon_and _ _ A S)|]. intros t _ [H K].
    apply gradient_comp; [now apply Dh | exact H].
  - apply tends_comp; [|exact B]. apply derivable_continuous_pt. exists (h' c). now apply Dh.
  - intros i I. apply tends_mul; [now apply tends_comp | auto].
Qed.

Lemma smooth_sum n (u : nat -> point -> R) c g :
  (forall j, (j < n)%nat -> smooth (u j) (c j) (g j)) ->
  smooth (fun z => sum n (fun j => u j z)) (sum n c) (fun i => sum n (fun j => g j i)).
Proof.
  induction n; intros H; simpl; [apply smooth_const|]. apply smooth_add; auto.
Qed.

Lemma smooth_exp u c g : smooth u c g ->
  smooth (fun z => exp (u z)) (exp c) (fun i => exp c * g i).
Proof.
  apply (smooth_comp (fun _ => True) exp exp); auto using derivable_pt_lim_exp, derivable_continuous_pt,
    derivable_pt_exp. apply soon_always. auto.
Qed.

Lemma smooth_ln u c g : 0 < c -> smooth u c g ->
  smooth (fun z => ln (u z)) (ln c) (fun i => / c * g i).
Proof.
  intros P H. apply (smooth_comp (fun x => 0 < x) ln Rinv); auto using derivable_pt_lim_ln.
  - apply (continuity_pt_inv id); [apply derivable_continuous_pt, derivable_pt_id | unfold id; lra].
  - destruct H as (_ & _ & T & _). exact (tends_lt _ _ _ _ (tends_const 0) T P).
Qed.

(** The norm, where the direction of a vector u = m r has a limit a/|a|. *)
Lemma smooth_norm n (u : nat -> point -> R) c g (m : R -> R) (r : nat -> R -> R) a :
  (forall j, (j < n)%nat -> smooth (u j) (c j) (g j)) ->
  soon (fun t => 0 < m t /\ forall j, (j < n)%nat -> u j (ray t) = m t * r j t) ->
  (forall j, (j < n)%nat -> tends (r j) (a j)) -> 0 < dot_n n a ->
  smooth (fun z => sqrt (sum n (fun j => u j z * u j z))) (sqrt (dot_n n c))
    (fun i => sum n (fun j => / sqrt (dot_n n a) * a j * g j i)).
Proof.
  intros U M Ra P.
  destruct (choose n (fun j G => soon (fun t => gradient (u j) (ray t) (G t))
      /\ (forall i, (i < d)%nat -> tends (fun t => G t i) (g j i))) (fun _ _ => 0)) as (G & HG).
  { intros j J. destruct (U j J) as (G & A & _ & C). now exists G. }
  assert (Rt : tends (fun t => dot_n n (fun j => r j t)) (dot_n n a))
    by (apply tends_sum; intros; apply tends_mul; auto).
  assert (Ct : forall x, 0 < x -> continuity_pt sqrt x)
    by (intros; apply continuity_pt_sqrt; lra).
  assert (It : tends (fun t => / sqrt (dot_n n (fun j => r j t))) (/ sqrt (dot_n n a))).
  { apply (tends_comp (fun x => / sqrt x)); [|exact Rt].
    apply (continuity_pt_inv sqrt); [auto|]. apply Rgt_not_eq. now apply sqrt_lt_R0. }
  exists (fun t i => sum n (fun j => / sqrt (dot_n n (fun j => r j t)) * r j t * G j t i)).
  split; [|split].
  - pose proof (tends_lt _ _ _ _ (tends_const 0) Rt P) as Pos.
    eapply soon_impl; [exact (soon_and _ _ M (soon_and _ _ Pos
      (soon_forall n _ (fun j J => proj1 (HG j J)))))|].
    intros t _ ((Mt & Ut) & Pt & Gt). cbv beta in *.
    set (R2 := dot_n n (fun j => r j t)) in *.
    assert (S : sum n (fun j => u j (ray t) * u j (ray t)) = m t * m t * R2).
    { unfold R2, dot_n. rewrite <- sum_scal. apply sum_ext. intros j J. rewrite Ut by exact J. ring. }
    assert (Q : sqrt (m t * m t * R2) = m t * sqrt R2)
      by (rewrite sqrt_mult by nra; rewrite sqrt_square by lra; reflexivity).
    assert (0 < sqrt R2) by now apply sqrt_lt_R0.
    eapply gradient_ext; [|eapply (gradient_comp sqrt)].
    2: { rewrite S. apply derivable_pt_lim_sqrt.
         apply Rmult_lt_0_compat; [now apply Rmult_lt_0_compat | exact Pt]. }
    2: { apply gradient_sum. intros j J. apply gradient_mul; apply Gt; exact J. }
    intros i I. cbv beta. rewrite <- sum_scal. apply sum_ext. intros j J. rewrite Q, Ut by exact J.
    field. split; lra.
  - apply (tends_comp sqrt); [apply continuity_pt_sqrt; apply sum_nonneg; intros; nra|].
    apply tends_sum. intros j J. destruct (U j J) as (_ & _ & T & _). now apply tends_mul.
  - intros i I. apply tends_sum. intros j J.
    apply tends_mul; [apply tends_mul; auto | now apply HG].
Qed.

(** What holds on the ray holds beside it. *)
Lemma smooth_lt u w c b g h : smooth u c g -> smooth w b h ->
  soon (fun t => u (ray t) < w (ray t)) -> beside (fun z => u z < w z).
Proof.
  intros (G & A & _) (H & A' & _) L.
  eapply soon_impl; [exact (soon_and _ _ L (soon_and _ _ A A'))|]. intros t _ (K & P & Q).
  apply gradient_cont in P, Q. set (e := (w (ray t) - u (ray t)) / 2).
  destruct (both _ _ _ (P e ltac:(unfold e; lra)) (Q e ltac:(unfold e; lra))) as (r & Hr & B).
  exists r. split; [exact Hr|]. intros z Hz. destruct (B z Hz) as [X Y].
  apply Rabs_def2 in X, Y. unfold e in *. lra.
Qed.

Lemma dist_ray t : 0 <= t -> dist (ray t) y <= t * sum d (fun i => Rabs (v i)).
Proof.
  intros Ht. eapply Rle_trans; [apply norm_le_sum|]. rewrite <- sum_scal. apply sum_le.
  intros i _. unfold minus, ray. replace (y i + t * v i - y i) with (t * v i) by ring.
  rewrite Rabs_mult, (Rabs_pos_eq t) by exact Ht. lra.
Qed.

(** The limit of the gradients along the ray is a limiting gradient at y. *)
Lemma smooth_limit u c g : smooth u c g -> limiting_gradient d u y g.
Proof.
  intros (G & A & _ & C).
  assert (N : tends (fun t => dist (G t) g) 0).
  { assert (K : forall m, (m <= d)%nat -> tends (fun t => sum m (fun i => Rabs (G t i - g i))) 0).
    { induction m; intros L; simpl; [apply tends_const|]. rewrite <- (Rplus_0_r 0) at 1.
      apply tends_add; [apply IHm; lia|]. intros e He.
      eapply soon_impl; [exact (C m ltac:(lia) e He)|]. intros t _ H.
      now rewrite Rminus_0_r, Rabs_Rabsolu. }
    intros e He. eapply soon_impl; [exact (K d ltac:(lia) e He)|]. intros t _ H.
    rewrite Rminus_0_r, Rabs_pos_eq by apply dist_nonneg.
    cbv beta in H. rewrite Rminus_0_r, Rabs_pos_eq in H by (apply sum_nonneg; intros; apply Rabs_pos).
    eapply Rle_lt_trans; [apply norm_le_sum | exact H]. }
  assert (M : tends (fun t => dist (ray t) y) 0).
  { intros e He. set (b := sum d (fun i => Rabs (v i))).
    assert (Hb : 0 <= b) by (apply sum_nonneg; intros; apply Rabs_pos).
    exists (e / (b + 1)). split; [apply Rdiv_lt_0_compat; lra|]. intros t [L H].
    rewrite Rminus_0_r, Rabs_pos_eq by apply dist_nonneg.
    eapply Rle_lt_trans; [apply dist_ray; lra|]. fold b.
    apply (Rmult_lt_compat_r (b + 1)) in H; [|lra].
    unfold Rdiv in H. rewrite Rmult_assoc, Rinv_l in H by lra. nra. }
  destruct A as (T & HT & A).
  assert (In : forall n, 0 < T / 2 / INR (S n) < T).
  { intros n. assert (1 <= INR (S n)) by (rewrite S_INR; pose proof (pos_INR n); lra).
    split; [apply Rdiv_lt_0_compat; lra|]. apply Rle_lt_trans with (T / 2); [|lra].
    apply Rmult_le_reg_r with (INR (S n)); [lra|]. unfold Rdiv at 1.
    rewrite Rmult_assoc, Rinv_l by lra. nra. }
  assert (L : forall a, tends a 0 -> Un_cv (fun n => a (T / 2 / INR (S n))) 0).
  { intros a H e He. destruct (H e He) as (U & HU & B).
    destruct (archimed_cor1 (U / T)) as (N0 & HN & PN); [now apply Rdiv_lt_0_compat|].
    exists N0. intros n Hn. apply B. split; [apply In|].
    assert (0 < INR N0) by now apply lt_0_INR.
    assert (INR N0 <= INR (S n)) by (apply le_INR; lia).
    assert (/ INR (S n) <= / INR N0) by (apply Rinv_le_contravar; lra).
    apply Rle_lt_trans with (T * / INR N0).
    { unfold Rdiv. rewrite Rmult_assoc. 
      assert (0 < / INR (S n)) by (apply Rinv_0_lt_compat; lra). nra. }
    apply Rlt_le_trans with (T * (U / T)); [now apply Rmult_lt_compat_l | right; field; lra]. }
  exists (fun n => ray (T / 2 / INR (S n))), (fun n => G (T / 2 / INR (S n))).
  split; [auto|]. split; [apply (L _ M) | apply (L _ N)].
Qed.

End Ray.

End Space.
